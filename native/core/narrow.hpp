// SPDX-License-Identifier: Apache-2.0
// Actions come in the integers of whoever made them; the kernels take bytes.
#pragma once

#include <cstdint>

namespace headrace {

// Copies `count` integers to bytes. Returns whether all of them are from 0 to choices - 1; where
// one is not, what was copied means nothing. 1 <= choices <= 256.
template <class T>
using NarrowFrom = bool (*)(const T* from, int64_t count, int choices, uint8_t* to);

struct Narrow {
  NarrowFrom<int64_t> from_int64;
  NarrowFrom<int32_t> from_int32;
  NarrowFrom<uint32_t> from_uint32;
  NarrowFrom<int16_t> from_int16;
  NarrowFrom<int8_t> from_int8;
  NarrowFrom<uint8_t> from_uint8;
};

}  // namespace headrace
