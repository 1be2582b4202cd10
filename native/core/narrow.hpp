// SPDX-License-Identifier: Apache-2.0
// Actions come in the integers of whoever made them; the kernels take the smallest that hold them.
#pragma once

#include <cstdint>

namespace headrace {

// Copies `count` integers to narrower ones. Returns whether all of them are from 0 to choices - 1;
// where one is not, what was copied means nothing. `choices` is at least 1, and all of them fit.
template <class From, class To>
using NarrowFrom = bool (*)(const From* from, int64_t count, int choices, To* to);

template <class To>
struct NarrowTo {
  NarrowFrom<int64_t, To> from_int64;
  NarrowFrom<int32_t, To> from_int32;
  NarrowFrom<uint32_t, To> from_uint32;
  NarrowFrom<int16_t, To> from_int16;
  NarrowFrom<uint16_t, To> from_uint16;
  NarrowFrom<int8_t, To> from_int8;
  NarrowFrom<uint8_t, To> from_uint8;
};

struct Narrow {
  NarrowTo<uint8_t> to_bytes;
  NarrowTo<uint16_t> to_halves;
};

}  // namespace headrace
