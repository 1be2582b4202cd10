// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace headrace::bind {

// Memory of a thread's own, which grows and stays: fresh pages would cost more than the work.
inline void* scratch(size_t bytes) {
  struct Free {
    void operator()(char* memory) const { ::operator delete(memory, std::align_val_t(64)); }
  };
  thread_local std::unique_ptr<char, Free> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    memory.reset((char*)::operator new(bytes, std::align_val_t(64)));
    size = bytes;
  }
  return memory.get();
}

}  // namespace headrace::bind
