// SPDX-License-Identifier: Apache-2.0
// Winograd's minimal filtering F(4 x 4, 3 x 3), sixteen channels at a time: 36 products for 16
// outputs of a 3 x 3 kernel instead of 144. A window of 6 x 6 inputs and the kernel are taken as
// polynomials, evaluated at the points 0, a, -a, b, -b and infinity, multiplied there, and the
// product is read off. With a = sqrt(1/2) and b = sqrt(2) float32 loses least.
//
// Each function is one dimension of a step. `_back` is its transpose: what gradients go through.
#pragma once

#include <immintrin.h>

#include "matmul.hpp"

namespace headrace::HEADRACE_ISA {

constexpr int kPoints = 36;  // 6 in each dimension
constexpr float kA = 0.70710678f, kB = 1.41421356f;
constexpr float kA2 = 0.5f, kB2 = 2, kA3 = 0.35355339f, kB3 = 2.82842712f;
constexpr float kSum2 = kA2 + kB2;                     // and kA2 * kB2 is 1
constexpr float kOverA = -1 / 1.5f, kOverB = 1 / 6.f;  // the interpolation's denominators

HEADRACE_STATIC __m512 number(float v) { return _mm512_set1_ps(v); }
HEADRACE_STATIC __m512 add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
HEADRACE_STATIC __m512 sub(__m512 a, __m512 b) { return _mm512_sub_ps(a, b); }
HEADRACE_STATIC __m512 times(float k, __m512 a) { return _mm512_mul_ps(number(k), a); }
// k a + b, and b - k a.
HEADRACE_STATIC __m512 add_times(float k, __m512 a, __m512 b) {
  return _mm512_fmadd_ps(number(k), a, b);
}
HEADRACE_STATIC __m512 sub_times(float k, __m512 a, __m512 b) {
  return _mm512_fnmadd_ps(number(k), a, b);
}

// Of a window's inputs.
struct OfWindow {
  static constexpr int kFrom = 6, kTo = 6;
  HEADRACE_STATIC void apply(const __m512 (&d)[6], __m512 (&out)[6]) {
    const __m512 even_a = sub_times(kB2, d[2], d[4]), odd_a = sub_times(kB2, d[1], d[3]);
    const __m512 even_b = sub_times(kA2, d[2], d[4]), odd_b = sub_times(kA2, d[1], d[3]);
    out[0] = add(sub_times(kSum2, d[2], d[0]), d[4]);
    out[1] = add_times(kA, odd_a, even_a);
    out[2] = sub_times(kA, odd_a, even_a);
    out[3] = add_times(kB, odd_b, even_b);
    out[4] = sub_times(kB, odd_b, even_b);
    out[5] = add(sub_times(kSum2, d[3], d[1]), d[5]);
  }
};
struct OfWindowBack {
  static constexpr int kFrom = 6, kTo = 6;
  HEADRACE_STATIC void apply(const __m512 (&r)[6], __m512 (&out)[6]) {
    const __m512 even_a = add(r[1], r[2]), odd_a = times(kA, sub(r[1], r[2]));
    const __m512 even_b = add(r[3], r[4]), odd_b = times(kB, sub(r[3], r[4]));
    out[0] = r[0];
    out[1] = sub_times(kB2, odd_a, sub_times(kA2, odd_b, r[5]));
    out[2] = sub_times(kSum2, r[0], sub(times(-kA2, even_b), times(kB2, even_a)));
    out[3] = sub_times(kSum2, r[5], add(odd_a, odd_b));
    out[4] = add(r[0], add(even_a, even_b));
    out[5] = r[5];
  }
};

// From the products to outputs.
struct ToOutputs {
  static constexpr int kFrom = 6, kTo = 4;
  HEADRACE_STATIC void apply(const __m512 (&m)[6], __m512 (&out)[4]) {
    const __m512 even_a = add(m[1], m[2]), odd_a = sub(m[1], m[2]);
    const __m512 even_b = add(m[3], m[4]), odd_b = sub(m[3], m[4]);
    out[0] = add(m[0], add(even_a, even_b));
    out[1] = add_times(kA, odd_a, times(kB, odd_b));
    out[2] = add_times(kA2, even_a, times(kB2, even_b));
    out[3] = add_times(kA3, odd_a, add_times(kB3, odd_b, m[5]));
  }
};
struct ToOutputsBack {
  static constexpr int kFrom = 4, kTo = 6;
  HEADRACE_STATIC void apply(const __m512 (&y)[4], __m512 (&out)[6]) {
    const __m512 even_a = add_times(kA2, y[2], y[0]), odd_a = add_times(kA2, y[3], y[1]);
    const __m512 even_b = add_times(kB2, y[2], y[0]), odd_b = add_times(kB2, y[3], y[1]);
    out[0] = y[0];
    out[1] = add_times(kA, odd_a, even_a);
    out[2] = sub_times(kA, odd_a, even_a);
    out[3] = add_times(kB, odd_b, even_b);
    out[4] = sub_times(kB, odd_b, even_b);
    out[5] = y[3];
  }
};

// Of the kernel.
struct OfKernel {
  static constexpr int kFrom = 3, kTo = 6;
  HEADRACE_STATIC void apply(const __m512 (&g)[3], __m512 (&out)[6]) {
    const __m512 even_a = times(kOverA, add_times(kA2, g[2], g[0]));
    const __m512 even_b = times(kOverB, add_times(kB2, g[2], g[0]));
    out[0] = g[0];
    out[1] = add_times(kOverA * kA, g[1], even_a);
    out[2] = sub_times(kOverA * kA, g[1], even_a);
    out[3] = add_times(kOverB * kB, g[1], even_b);
    out[4] = sub_times(kOverB * kB, g[1], even_b);
    out[5] = g[2];
  }
};
struct OfKernelBack {
  static constexpr int kFrom = 6, kTo = 3;
  HEADRACE_STATIC void apply(const __m512 (&r)[6], __m512 (&out)[3]) {
    const __m512 even_a = times(kOverA, add(r[1], r[2])), even_b = times(kOverB, add(r[3], r[4]));
    const __m512 odd_a = sub(r[1], r[2]), odd_b = sub(r[3], r[4]);
    out[0] = add(r[0], add(even_a, even_b));
    out[1] = add_times(kOverA * kA, odd_a, times(kOverB * kB, odd_b));
    out[2] = add_times(kA2, even_a, add_times(kB2, even_b, r[5]));
  }
};

// Both dimensions: `load(row, column)` gives the numbers, `store(row, column, v)` takes them.
template <class Step, class Load, class Store>
HEADRACE_STATIC void transform(Load load, Store store) {
  __m512 between[Step::kTo][Step::kFrom];
#pragma GCC unroll 6
  for (int column = 0; column < Step::kFrom; ++column) {
    __m512 in[Step::kFrom], out[Step::kTo];
#pragma GCC unroll 6
    for (int row = 0; row < Step::kFrom; ++row) in[row] = load(row, column);
    Step::apply(in, out);
#pragma GCC unroll 6
    for (int row = 0; row < Step::kTo; ++row) between[row][column] = out[row];
  }
#pragma GCC unroll 6
  for (int row = 0; row < Step::kTo; ++row) {
    __m512 out[Step::kTo];
    Step::apply(between[row], out);
#pragma GCC unroll 6
    for (int column = 0; column < Step::kTo; ++column) store(row, column, out[column]);
  }
}

}  // namespace headrace::HEADRACE_ISA
