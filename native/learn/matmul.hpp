// SPDX-License-Identifier: Apache-2.0
// Products of matrices that are in the cache, 8 rows by 32 columns at a time, with AVX-512.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define HEADRACE_STATIC static inline __attribute__((always_inline))

namespace headrace::HEADRACE_ISA {

// Elements are 32 bits: a float, or two bfloat16 that follow each other in the summed dimension.
struct Float32 {
  HEADRACE_STATIC __m512 add_product(__m512 sum, uint32_t a, __m512i b) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_set1_epi32((int)a)), _mm512_castsi512_ps(b),
                           sum);
  }
};
#if defined(__AVX512BF16__)
struct Bfloat16 {
  HEADRACE_STATIC __m512 add_product(__m512 sum, uint32_t a, __m512i b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32((int)a), (__m512bh)b);
  }
};
#endif

// The first `count` of 16 lanes.
HEADRACE_STATIC __mmask16 lanes(int count) {
  return count >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1u << (count < 0 ? 0 : count)) - 1);
}

// c[i][j] = (or +=) the sum over p of a(i, p) b[p][j]. By rows a(i, p) is a[i * lda + p], else
// a[p * lda + i].
template <class E, bool by_rows, bool add, int rows, int vectors>
static void tile(int length, const uint32_t* a, ptrdiff_t lda, const uint32_t* b, ptrdiff_t ldb,
                 float* c, ptrdiff_t ldc, int columns) {
  __m512 sum[rows][vectors];
  for (int i = 0; i < rows; ++i)
    for (int v = 0; v < vectors; ++v) sum[i][v] = _mm512_setzero_ps();
  for (int p = 0; p < length; ++p, b += ldb) {
    __m512i right[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) right[v] = _mm512_loadu_si512(b + 16 * v);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const uint32_t left = by_rows ? a[i * lda + p] : a[p * lda + i];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[i][v] = E::add_product(sum[i][v], left, right[v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const __mmask16 some = lanes(columns - 16 * v);
      float* at = c + i * ldc + 16 * v;
      const __m512 old = add ? _mm512_maskz_loadu_ps(some, at) : _mm512_setzero_ps();
      _mm512_mask_storeu_ps(at, some, _mm512_add_ps(old, sum[i][v]));
    }
}

template <class E, bool by_rows, bool add, int vectors>
static void tiles(int rows, int length, const uint32_t* a, ptrdiff_t lda, const uint32_t* b,
                  ptrdiff_t ldb, float* c, ptrdiff_t ldc, int columns) {
  const ptrdiff_t step = by_rows ? lda : 1;
  int i = 0;
  for (; i + 8 <= rows; i += 8)
    tile<E, by_rows, add, 8, vectors>(length, a + i * step, lda, b, ldb, c + i * ldc, ldc, columns);
  if (rows - i >= 4) {
    tile<E, by_rows, add, 4, vectors>(length, a + i * step, lda, b, ldb, c + i * ldc, ldc, columns);
    i += 4;
  }
  for (; i < rows; ++i)
    tile<E, by_rows, add, 1, vectors>(length, a + i * step, lda, b, ldb, c + i * ldc, ldc, columns);
}

// c [rows, columns] from b in panels of 32 columns, `panel` elements apart, each of rows `ldb`
// apart; a panel is read whole, 16 or 32 wide.
template <class E, bool by_rows, bool add>
static void matmul(int rows, int columns, int length, const void* a, ptrdiff_t lda, const void* b,
                   ptrdiff_t panel, ptrdiff_t ldb, float* c, ptrdiff_t ldc) {
  for (int j = 0; j < columns; j += 32) {
    const auto* right = (const uint32_t*)b + j / 32 * panel;
    if (columns - j > 16)
      tiles<E, by_rows, add, 2>(rows, length, (const uint32_t*)a, lda, right, ldb, c + j, ldc,
                                columns - j);
    else
      tiles<E, by_rows, add, 1>(rows, length, (const uint32_t*)a, lda, right, ldb, c + j, ldc,
                                columns - j);
  }
}

// 16 x 16 elements transposed.
HEADRACE_STATIC void transpose16(const uint32_t* from, ptrdiff_t from_ld, uint32_t* to,
                                 ptrdiff_t to_ld) {
  __m512i r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(from + i * from_ld);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * to_ld, r[i]);
}

// Panels [columns / 32][rows][32] of a matrix by rows; columns that are not there are 0.
[[maybe_unused]] static void pack(const uint32_t* from, ptrdiff_t ld, int rows, int columns,
                                  uint32_t* to) {
  for (int j = 0; j < columns; j += 32)
    for (int i = 0; i < rows; ++i, to += 32)
      for (int v = 0; v < 32; v += 16)
        _mm512_storeu_si512(
            to + v, _mm512_maskz_loadu_epi32(lanes(columns - j - v), from + i * ld + j + v));
}

// The same of its transpose: panels [rows / 32][columns][32].
[[maybe_unused]] static void pack_transposed(const uint32_t* from, ptrdiff_t ld, int rows,
                                             int columns, uint32_t* to) {
  for (int j = 0; j < rows; j += 16) {
    uint32_t* panel = to + (ptrdiff_t)(j / 32) * columns * 32 + j % 32;
    int i = 0;
    if (rows - j >= 16)
      for (; i + 16 <= columns; i += 16)
        transpose16(from + j * ld + i, ld, panel + (ptrdiff_t)i * 32, 32);
    for (; i < columns; ++i)
      for (int l = 0; l < 16; ++l)
        panel[(ptrdiff_t)i * 32 + l] = j + l < rows ? from[(j + l) * ld + i] : 0;
  }
}

}  // namespace headrace::HEADRACE_ISA
