// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lanes.hpp"

namespace headrace::HEADRACE_ISA {

// A window on uint32[words, stride], from one environment on. The stride is known when compiling
// where kStride is not 0.
template <int64_t kStride = 0>
struct StateView {
  uint32_t* base;
  int64_t dynamic_stride = kStride;

  HEADRACE_INLINE uint32_t* word(int w) const {
    return base + w * (kStride ? kStride : dynamic_stride);
  }
  HEADRACE_INLINE uint32_t& at(int w, int64_t i) const { return word(w)[i]; }
  template <class V>
  HEADRACE_INLINE V get(int w, int64_t i) const {
    return load<V>(word(w) + i);
  }
  template <class V>
  HEADRACE_INLINE void set(int w, int64_t i, const V& value) const {
    store(word(w) + i, value);
  }
  HEADRACE_INLINE StateView from(int64_t i) const { return {base + i, dynamic_stride}; }
};

}  // namespace headrace::HEADRACE_ISA
