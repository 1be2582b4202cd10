// SPDX-License-Identifier: Apache-2.0
// From one vector a field to one row an environment.
#pragma once

#include <utility>

#include "lanes.hpp"

namespace headrace::HEADRACE_ISA {

// out[l] = (a, b)[index(l)], where b's lanes count from W.
template <class L, auto index, int... l>
HEADRACE_INLINE typename L::f32 shuffle(typename L::f32 a, typename L::f32 b,
                                        std::integer_sequence<int, l...>) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, index(l)...);
#else  // GCC has the other one only from version 12 on
  return __builtin_shuffle(a, b, typename L::i32{index(l)...});
#endif
}
template <class L, auto index>
HEADRACE_INLINE typename L::f32 shuffle(typename L::f32 a, typename L::f32 b) {
  return shuffle<L, index>(a, b, std::make_integer_sequence<int, L::width>());
}

// Four fields: transposed within each 128 bits, which then hold a row each, and those put in order.
template <class L>
HEADRACE_INLINE void store_rows_of_four(float* out, const typename L::f32 (&field)[4]) {
  constexpr int W = L::width;
  using f32 = typename L::f32;
  constexpr auto low = [](int l) { return l / 4 * 4 + l % 4 / 2 + l % 2 * W; };
  constexpr auto high = [](int l) { return l / 4 * 4 + l % 4 / 2 + 2 + l % 2 * W; };
  const f32 low_02 = shuffle<L, low>(field[0], field[2]);
  const f32 low_13 = shuffle<L, low>(field[1], field[3]);
  const f32 high_02 = shuffle<L, high>(field[0], field[2]);
  const f32 high_13 = shuffle<L, high>(field[1], field[3]);
  const f32 row0 = shuffle<L, low>(low_02, low_13);    // rows 0 4 8 ...
  const f32 row1 = shuffle<L, high>(low_02, low_13);   // rows 1 5 9 ...
  const f32 row2 = shuffle<L, low>(high_02, high_13);  // rows 2 6 ...
  const f32 row3 = shuffle<L, high>(high_02, high_13);
  if constexpr (W == 4) {
    store(out, row0);
    store(out + 4, row1);
    store(out + 8, row2);
    store(out + 12, row3);
  } else {
    // 128-bit parts: the first (second) half of a, then of b; the even (odd) ones of a, then of b.
    constexpr auto first = [](int l) { return l % (W / 2) + l / (W / 2) * W; };
    constexpr auto second = [](int l) { return l % (W / 2) + W / 2 + l / (W / 2) * W; };
    const f32 first_01 = shuffle<L, first>(row0, row1);
    const f32 first_23 = shuffle<L, first>(row2, row3);
    const f32 second_01 = shuffle<L, second>(row0, row1);
    const f32 second_23 = shuffle<L, second>(row2, row3);
    if constexpr (W == 8) {
      store(out, first_01);
      store(out + 8, first_23);
      store(out + 16, second_01);
      store(out + 24, second_23);
    } else {
      constexpr auto even = [](int l) { return l % 4 + l / 4 * 8; };
      constexpr auto odd = [](int l) { return l % 4 + l / 4 * 8 + 4; };
      store(out, shuffle<L, even>(first_01, first_23));
      store(out + 16, shuffle<L, odd>(first_01, first_23));
      store(out + 32, shuffle<L, even>(second_01, second_23));
      store(out + 48, shuffle<L, odd>(second_01, second_23));
    }
  }
}

// Three fields: vector k of the rows takes lane (W k + l) / 3 of field (W k + l) % 3.
template <class L, int k>
HEADRACE_INLINE void store_third_of_rows(float* out, const typename L::f32 (&field)[3]) {
  constexpr int W = L::width;
  constexpr auto two = [](int l) { return (W * k + l) / 3 + ((W * k + l) % 3 == 1 ? W : 0); };
  constexpr auto three = [](int l) { return (W * k + l) % 3 == 2 ? W + (W * k + l) / 3 : l; };
  store(out + W * k, shuffle<L, three>(shuffle<L, two>(field[0], field[1]), field[2]));
}

// Writes vectors of one field each as rows: out[lane * D + d] = field[d][lane].
template <class L, int D>
HEADRACE_INLINE void store_rows(float* out, const typename L::f32 (&field)[D]) {
  constexpr int W = L::width;
  if constexpr (D == 1) {
    store(out, field[0]);
  } else if constexpr (D == 3 && W >= 4) {
    store_third_of_rows<L, 0>(out, field);
    store_third_of_rows<L, 1>(out, field);
    store_third_of_rows<L, 2>(out, field);
  } else if constexpr (D == 4 && W >= 4) {
    store_rows_of_four<L>(out, field);
  } else {
    alignas(64) float columns[D][W];
    __builtin_memcpy(columns, field, sizeof(columns));
    for (int l = 0; l < W; ++l) {
      for (int d = 0; d < D; ++d) out[l * D + d] = columns[d][l];
    }
  }
}

}  // namespace headrace::HEADRACE_ISA
