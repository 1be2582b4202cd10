// SPDX-License-Identifier: Apache-2.0
// What is done to a block of sums between two layers, and to their gradients on the way back.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "matmul.hpp"

namespace headrace::HEADRACE_ISA {

// How hidden layers are kept.
#if defined(__AVX512BF16__)
constexpr bool kNarrow = true;
using Hidden = uint16_t;

HEADRACE_STATIC __m256i narrow(__m512 v) { return (__m256i)_mm512_cvtneps_pbh(v); }
HEADRACE_STATIC __m512 load(const uint16_t* from) {
  const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}
HEADRACE_STATIC void keep(uint16_t* to, __m512 v) { _mm256_storeu_si256((__m256i*)to, narrow(v)); }
#else
constexpr bool kNarrow = false;
using Hidden = float;
#endif
HEADRACE_STATIC __m512 load(const float* from) { return _mm512_loadu_ps(from); }
HEADRACE_STATIC void keep(float* to, __m512 v) { _mm512_storeu_ps(to, v); }

// A rational approximation (Eigen's), wrong by less than 5e-7 of the value.
HEADRACE_STATIC __m512 tanh(__m512 x) {
  const auto number = [](float v) { return _mm512_set1_ps(v); };
  const __m512 limit = number(7.90531110763549805f);  // beyond it a float32 is 1
  const __m512 z =
      _mm512_max_ps(_mm512_min_ps(limit, x), _mm512_sub_ps(_mm512_setzero_ps(), limit));
  const __m512 s = _mm512_mul_ps(z, z);
  constexpr float above[7] = {-2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f,
                              5.12229709037114e-08f,  1.48572235717979e-05f, 6.37261928875436e-04f,
                              4.89352455891786e-03f};
  constexpr float below[4] = {1.19825839466702e-06f, 1.18534705686654e-04f, 2.26843463243900e-03f,
                              4.89352518554385e-03f};
  __m512 p = number(above[0]), q = number(below[0]);
  for (int i = 1; i < 7; ++i) p = _mm512_fmadd_ps(p, s, number(above[i]));
  for (int i = 1; i < 4; ++i) q = _mm512_fmadd_ps(q, s, number(below[i]));
  const __m512 y = _mm512_div_ps(_mm512_mul_ps(z, p), q);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);  // it stays one
  return _mm512_mask_mov_ps(y, nan, x);
}

HEADRACE_STATIC __m512 positive(__m512 x) {
  return _mm512_max_ps(_mm512_setzero_ps(), x);  // a NaN stays one
}

// sums = f(sums + bias), also kept in `hidden`.
template <__m512 (*f)(__m512)>
static void activate(float* sums, const float* bias, int rows, int columns, Hidden* hidden) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; j += 16) {
      float* at = sums + (int64_t)i * columns + j;
      const __m512 v = f(_mm512_add_ps(_mm512_loadu_ps(at), _mm512_loadu_ps(bias + j)));
      _mm512_storeu_ps(at, v);
      if ((void*)hidden != (void*)sums) keep(hidden + (int64_t)i * columns + j, v);
    }
}
static void rectify(float* sums, const float* bias, int rows, int columns, Hidden* hidden) {
  activate<positive>(sums, bias, rows, columns, hidden);
}
static void squash(float* sums, const float* bias, int rows, int columns, Hidden* hidden) {
  activate<tanh>(sums, bias, rows, columns, hidden);
}

// From the gradient of what a layer gave, `was`, to that of its sums; added to the bias's as well.
template <__m512 (*slope)(__m512 gradient, __m512 was)>
static void deactivate(float* gradient, const Hidden* hidden, int rows, int columns, float* bias) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; j += 16) {
      float* at = gradient + (int64_t)i * columns + j;
      const __m512 v = slope(_mm512_loadu_ps(at), load(hidden + (int64_t)i * columns + j));
      _mm512_storeu_ps(at, v);
      if (bias) _mm512_storeu_ps(bias + j, _mm512_add_ps(_mm512_loadu_ps(bias + j), v));
    }
}
HEADRACE_STATIC __m512 of_positive(__m512 gradient, __m512 was) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(was, _mm512_setzero_ps(), _CMP_GT_OQ), gradient);
}
HEADRACE_STATIC __m512 of_tanh(__m512 gradient, __m512 was) {
  return _mm512_mul_ps(gradient, _mm512_fnmadd_ps(was, was, _mm512_set1_ps(1)));
}
static void rectify_gradient(float* gradient, const Hidden* hidden, int rows, int columns,
                             float* bias) {
  deactivate<of_positive>(gradient, hidden, rows, columns, bias);
}
static void squash_gradient(float* gradient, const Hidden* hidden, int rows, int columns,
                            float* bias) {
  deactivate<of_tanh>(gradient, hidden, rows, columns, bias);
}

}  // namespace headrace::HEADRACE_ISA
