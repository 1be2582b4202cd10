// SPDX-License-Identifier: Apache-2.0
// The newest parameters in shared memory: one writer, any number of readers, no lock.
//
// Memory: `begun` and `version`, each on a line of its own, then two vectors. Version v is in
// vector v % 2; version 0 is none.
//
// The writer never waits, and always writes the vector that the newest version is not in. A reader
// copies, and tries again where the writer has meanwhile begun with the vector that it read: that
// takes two publications within one copy. A writer killed while it writes leaves `version` as it
// was, and readers go on with the last whole one.
//
// Memory order.
//   writer:  W1 begun = v (relaxed)  W2 fence(release)  W3 vector (relaxed)  W4 version = v
//   (release) reader:  R1 v = version (acquire)  R2 vector (relaxed)  R3 fence(acquire)  R4 begun
//   (relaxed)
// R1 reads what W4 stored: all of version v happens before R2. If R2 reads a word of version v + 2,
// which goes into the same vector, W2 and R3 synchronise and R4 sees begun >= v + 2. Nothing here
// rests on what one processor does.
#pragma once

#include "words.hpp"

namespace headrace::channels {

class Weights {
 public:
  // `count` floats.
  Weights(void* memory, int64_t count)
      : begun_((Word*)memory),
        version_(begun_ + kLine / kWord),
        vectors_(version_ + kLine / kWord),
        bytes_(count * 4) {}

  static int64_t memory_bytes(int64_t count) { return 2 * kLine + 2 * stride(count * 4); }

  int64_t count() const { return bytes_ / 4; }

  Word version() const { return load(version_, std::memory_order_acquire); }

  // Returns the new version.
  Word publish(const float* vector) {
    const Word next = load(version_, std::memory_order_relaxed) + 1;
    store(begun_, next, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    copy_in(at(next), vector, bytes_);
    store(version_, next, std::memory_order_release);
    return next;
  }

  // Copies the newest version and returns its number; 0 where there is none.
  Word read(float* vector) const {
    while (true) {
      const Word v = load(version_, std::memory_order_acquire);
      if (v == 0) return 0;
      copy_out(vector, at(v), bytes_);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (load(begun_, std::memory_order_relaxed) <= v + 1) return v;
    }
  }

 private:
  static int64_t stride(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

  Word* at(Word version) const { return vectors_ + (version % 2) * stride(bytes_) / kWord; }

  Word* begun_;
  Word* version_;
  Word* vectors_;
  int64_t bytes_;
};

}  // namespace headrace::channels
