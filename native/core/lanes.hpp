// SPDX-License-Identifier: Apache-2.0
// Arithmetic on W environments at once.
//
// An environment written over Lanes<W> compiles to scalar code (W = 1) and to SIMD from one text.
// Only IEEE additions, products, divisions, comparisons and conversions are used, and the compiler
// may not contract them: every width and instruction set gives the same bits.
//
// Everything here is force-inlined into the namespace of one instruction set, and nothing of the
// standard library is called, so that no function compiled for a newer processor can be picked by
// the linker for an older one.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define HEADRACE_INLINE [[gnu::always_inline]] inline

namespace headrace::HEADRACE_ISA {

// How many lanes one register holds.
#if defined(HEADRACE_WIDTH)
inline constexpr int kWidth = HEADRACE_WIDTH;
#elif defined(__AVX512F__)
inline constexpr int kWidth = 16;
#elif defined(__AVX2__)
inline constexpr int kWidth = 8;
#else
inline constexpr int kWidth = 4;
#endif

template <int W>
struct Lanes {
  static constexpr int width = W;
  typedef float f32 __attribute__((vector_size(4 * W)));
  typedef int32_t i32 __attribute__((vector_size(4 * W)));  // integers, and masks: 0 or -1
  typedef uint32_t u32 __attribute__((vector_size(4 * W)));
};

// ---- memory ----

template <class V, class T>
HEADRACE_INLINE V load(const T* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof(V));
  return value;
}

template <class V, class T>
HEADRACE_INLINE void store(T* to, const V& value) {
  __builtin_memcpy(to, &value, sizeof(V));
}

// One byte a lane, widened.
template <class L>
HEADRACE_INLINE typename L::i32 load_bytes(const uint8_t* from) {
#if defined(__AVX512F__)
  if constexpr (L::width == 16) {
    return (typename L::i32)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)from));
  }
#endif
#if defined(__AVX2__)
  if constexpr (L::width == 8) {
    return (typename L::i32)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)from));
  }
#endif
#if defined(__SSE4_1__)
  if constexpr (L::width == 4) {
    return (typename L::i32)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(load<int32_t>(from)));
  }
#endif
  typename L::i32 value;
  for (int l = 0; l < L::width; ++l) value[l] = from[l];
  return value;
}

// One byte a lane; the values fit.
template <class L>
HEADRACE_INLINE void store_bytes(uint8_t* to, typename L::i32 value) {
#if defined(__AVX512F__)
  if constexpr (L::width == 16) {
    _mm_storeu_si128((__m128i*)to, _mm512_cvtepi32_epi8((__m512i)value));
    return;
  }
#endif
#if defined(__AVX2__)
  if constexpr (L::width == 8) {
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)value),
                                           _mm256_extracti128_si256((__m256i)value, 1));
    _mm_storel_epi64((__m128i*)to, _mm_packus_epi16(words, words));
    return;
  }
#endif
#if defined(__SSE4_1__)
  if constexpr (L::width == 4) {
    const __m128i words = _mm_packus_epi32((__m128i)value, (__m128i)value);
    store(to, _mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
    return;
  }
#endif
  for (int l = 0; l < L::width; ++l) to[l] = (uint8_t)value[l];
}

// Appends first + l for each set lane l of a mask, in order; returns the new size. The list has
// room for a whole vector more.
template <class L>
HEADRACE_INLINE int append_set(int32_t* list, int size, typename L::i32 mask, int64_t first) {
#if defined(__AVX512F__)
  if constexpr (L::width == 16) {
    const auto place =
        typename L::i32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + (int32_t)first;
    const __mmask16 set = _mm512_movepi32_mask((__m512i)mask);
    _mm512_storeu_si512(list + size, _mm512_maskz_compress_epi32(set, (__m512i)place));
    return size + __builtin_popcount(set);
  }
#endif
  for (int l = 0; l < L::width; ++l) {
    list[size] = (int32_t)first + l;
    size -= mask[l];
  }
  return size;
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

// Both at once, wrong by less than 1.2e-7 for |x| <= 8192: reduction to [-pi/4, pi/4] by a
// three-part pi/2, then the minimax polynomials of Cephes.
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
  f32 cos_r =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * (z * z) +
      (1.0f - 0.5f * z);

  i32 swap = (quadrant & 1) != 0;
  f32 s = swap ? cos_r : sin_r;
  f32 c = swap ? sin_r : cos_r;
  i32 sin_sign = (quadrant & 2) << 30;
  i32 cos_sign = ((quadrant + 1) & 2) << 30;
  return {bits<f32>(bits<i32>(s) ^ sin_sign), bits<f32>(bits<i32>(c) ^ cos_sign)};
}

}  // namespace headrace::HEADRACE_ISA
