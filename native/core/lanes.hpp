// SPDX-License-Identifier: Apache-2.0
// Arithmetic on W environments at once.
//
// An environment written over Lanes<W> compiles to scalar code (W = 1) and to SIMD (W = 16) from one
// text. Only IEEE additions, products, divisions, comparisons and conversions are used, and the
// compiler may not contract them: every instruction set gives the same bits.
//
// Everything here is force-inlined into the namespace of one instruction set, and nothing of the
// standard library is called, so that no function compiled for a newer processor can be picked by the
// linker for an older one.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define HEADRACE_INLINE [[gnu::always_inline]] inline

namespace headrace::HEADRACE_ISA {

template <int W>
struct Lanes {
  static constexpr int width = W;
  typedef float f32 __attribute__((vector_size(4 * W)));
  typedef int32_t i32 __attribute__((vector_size(4 * W)));  // integers, and masks: 0 or -1
  typedef uint32_t u32 __attribute__((vector_size(4 * W)));
  typedef uint8_t u8 __attribute__((vector_size(W)));
};

// ---- memory: `count` lanes, the rest zero ----

template <class V, class T>
HEADRACE_INLINE V load(const T* from, int count) {
  V value = {};
  if (count * sizeof(T) == sizeof(V)) {
    __builtin_memcpy(&value, from, sizeof(V));
  } else {
    __builtin_memcpy(&value, from, count * sizeof(T));
  }
  return value;
}

template <class V, class T>
HEADRACE_INLINE void store(T* to, const V& value, int count) {
  if (count * sizeof(T) == sizeof(V)) {
    __builtin_memcpy(to, &value, sizeof(V));
  } else {
    __builtin_memcpy(to, &value, count * sizeof(T));
  }
}

// The same bits, read as another type of lane.
template <class To, class From>
HEADRACE_INLINE To bits(const From& value) {
  return (To)value;
}

template <class To, class From>
HEADRACE_INLINE To convert(const From& value) {
  return __builtin_convertvector(value, To);
}

// Bit l is set where lane l of a mask is.
template <int W>
HEADRACE_INLINE uint32_t movemask(typename Lanes<W>::i32 mask) {
#if defined(__AVX512DQ__)
  if constexpr (W == 16) return _mm512_movepi32_mask((__m512i)mask);
#elif defined(__AVX2__)
  if constexpr (W == 16) {
    __m256i half[2];
    __builtin_memcpy(half, &mask, sizeof(mask));
    return (uint32_t)_mm256_movemask_ps((__m256)half[0]) |
           (uint32_t)_mm256_movemask_ps((__m256)half[1]) << 8;
  }
#elif defined(__SSE2__)
  if constexpr (W == 16) {
    __m128i part[4];
    __builtin_memcpy(part, &mask, sizeof(mask));
    uint32_t out = 0;
    for (int p = 0; p < 4; ++p) out |= (uint32_t)_mm_movemask_ps((__m128)part[p]) << (4 * p);
    return out;
  }
#endif
  uint32_t out = 0;
  for (int l = 0; l < W; ++l) out |= (uint32_t)(mask[l] & 1) << l;
  return out;
}

// ---- arithmetic ----

template <class V>
HEADRACE_INLINE V minimum(V a, V b) {
  return a < b ? a : b;
}

template <class V>
HEADRACE_INLINE V maximum(V a, V b) {
  return a > b ? a : b;
}

template <class F>
HEADRACE_INLINE F clip(F x, float low, float high) {
  return minimum(maximum(x, F{} + low), F{} + high);
}

// To the nearest integer, ties to even; |x| < 2^22.
template <class F>
HEADRACE_INLINE F round_nearest(F x) {
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23
  return (x + magic) - magic;
}

// The greatest integer not above x; |x| < 2^22.
template <class F>
HEADRACE_INLINE F floor(F x) {
  F nearest = round_nearest(x);
  return nearest > x ? nearest - 1.0f : nearest;
}

template <class F>
struct SinCos {
  F sin, cos;
};

// Both at once, within 2 ulp for |x| < 8192: reduction to [-pi/4, pi/4] by a three-part pi/2, then
// the minimax polynomials of Cephes.
template <class L>
HEADRACE_INLINE SinCos<typename L::f32> sincos(typename L::f32 x) {
  using f32 = typename L::f32;
  using i32 = typename L::i32;
  constexpr float two_over_pi = 0.636619772367581343f;
  constexpr float half_pi_1 = 1.5703125f;
  constexpr float half_pi_2 = 4.837512969970703125e-4f;
  constexpr float half_pi_3 = 7.54978995489188216e-8f;

  f32 quarter = round_nearest(x * two_over_pi);
  i32 quadrant = convert<i32>(quarter);
  f32 r = ((x - quarter * half_pi_1) - quarter * half_pi_2) - quarter * half_pi_3;
  f32 z = r * r;
  f32 sin_r = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
  f32 cos_r = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) *
                  (z * z) +
              (1.0f - 0.5f * z);

  i32 swap = (quadrant & 1) != 0;
  f32 s = swap ? cos_r : sin_r;
  f32 c = swap ? sin_r : cos_r;
  i32 sin_sign = (quadrant & 2) << 30;
  i32 cos_sign = ((quadrant + 1) & 2) << 30;
  return {bits<f32>(bits<i32>(s) ^ sin_sign), bits<f32>(bits<i32>(c) ^ cos_sign)};
}

// ---- rows ----

// Writes D vectors of one field each as `count` rows of D values: out[lane * D + d] = field[d][lane].
template <class L, int D, class F>
HEADRACE_INLINE void store_rows(float* out, const F (&field)[D], int count) {
  constexpr int W = L::width;
  if constexpr (D == 1) {
    store(out, field[0], count);
    return;
  }
#if defined(__AVX512F__)
  if constexpr (D == 4 && W == 16) {
    if (count == W) {
      const __m512 ac_low = _mm512_unpacklo_ps((__m512)field[0], (__m512)field[2]);
      const __m512 ac_high = _mm512_unpackhi_ps((__m512)field[0], (__m512)field[2]);
      const __m512 bd_low = _mm512_unpacklo_ps((__m512)field[1], (__m512)field[3]);
      const __m512 bd_high = _mm512_unpackhi_ps((__m512)field[1], (__m512)field[3]);
      const __m512 r0 = _mm512_unpacklo_ps(ac_low, bd_low);    // rows 0 4 8 12
      const __m512 r1 = _mm512_unpackhi_ps(ac_low, bd_low);    // rows 1 5 9 13
      const __m512 r2 = _mm512_unpacklo_ps(ac_high, bd_high);  // rows 2 6 10 14
      const __m512 r3 = _mm512_unpackhi_ps(ac_high, bd_high);  // rows 3 7 11 15
      const __m512 a = _mm512_shuffle_f32x4(r0, r1, 0x44);     // rows 0 4 1 5
      const __m512 b = _mm512_shuffle_f32x4(r2, r3, 0x44);     // rows 2 6 3 7
      const __m512 c = _mm512_shuffle_f32x4(r0, r1, 0xee);     // rows 8 12 9 13
      const __m512 d = _mm512_shuffle_f32x4(r2, r3, 0xee);     // rows 10 14 11 15
      _mm512_storeu_ps(out, _mm512_shuffle_f32x4(a, b, 0x88));
      _mm512_storeu_ps(out + 16, _mm512_shuffle_f32x4(a, b, 0xdd));
      _mm512_storeu_ps(out + 32, _mm512_shuffle_f32x4(c, d, 0x88));
      _mm512_storeu_ps(out + 48, _mm512_shuffle_f32x4(c, d, 0xdd));
      return;
    }
  }
#endif
  alignas(64) float columns[D][W];
  __builtin_memcpy(columns, field, sizeof(columns));
  if (count == W) {
    for (int l = 0; l < W; ++l) {
      for (int d = 0; d < D; ++d) out[l * D + d] = columns[d][l];
    }
  } else {
    for (int l = 0; l < count; ++l) {
      for (int d = 0; d < D; ++d) out[l * D + d] = columns[d][l];
    }
  }
}

}  // namespace headrace::HEADRACE_ISA
