// SPDX-License-Identifier: Apache-2.0
// Copies to and from memory that another process may be writing or reading at the same time.
//
// Each 8-byte word is one relaxed atomic access, so that such a race is defined: a reader may see
// old and new words mixed, never half a word, and finds out from a sequence number that is ordered
// around the copy by fences. On x86-64 and arm64 these are plain loads and stores.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

namespace headrace::channels {

using Word = uint64_t;
static_assert(std::atomic_ref<Word>::is_always_lock_free, "a lock would not be shared");

inline constexpr int64_t kWord = sizeof(Word);
inline constexpr int64_t kLine = 64;

constexpr int64_t words_for(int64_t bytes) { return (bytes + kWord - 1) / kWord; }

inline Word load(const Word* at, std::memory_order order) {
  return std::atomic_ref<Word>(*const_cast<Word*>(at)).load(order);
}

inline void store(Word* at, Word value, std::memory_order order) {
  std::atomic_ref<Word>(*at).store(value, order);
}

// From private memory into shared memory; the last word is filled up with zeros.
inline void copy_in(Word* shared, const void* own, int64_t bytes) {
  const auto* from = (const char*)own;
  const int64_t whole = bytes / kWord;
  for (int64_t i = 0; i < whole; ++i) {
    Word word;
    std::memcpy(&word, from + i * kWord, kWord);
    store(shared + i, word, std::memory_order_relaxed);
  }
  if (const int64_t left = bytes - whole * kWord) {
    Word word = 0;
    std::memcpy(&word, from + whole * kWord, left);
    store(shared + whole, word, std::memory_order_relaxed);
  }
}

// From shared memory into private memory.
inline void copy_out(void* own, const Word* shared, int64_t bytes) {
  auto* to = (char*)own;
  const int64_t whole = bytes / kWord;
  for (int64_t i = 0; i < whole; ++i) {
    const Word word = load(shared + i, std::memory_order_relaxed);
    std::memcpy(to + i * kWord, &word, kWord);
  }
  if (const int64_t left = bytes - whole * kWord) {
    const Word word = load(shared + whole, std::memory_order_relaxed);
    std::memcpy(to + whole * kWord, &word, left);
  }
}

}  // namespace headrace::channels
