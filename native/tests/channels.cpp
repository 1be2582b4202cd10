// SPDX-License-Identifier: Apache-2.0
// The channels between processes, with threads in their place, so that ThreadSanitizer sees them.
#include <atomic>
#include <thread>
#include <vector>

#include "../channels/ring.hpp"
#include "../channels/weights.hpp"
#include "check.hpp"

namespace {

using headrace::channels::Ring;
using headrace::channels::Weights;
using headrace::channels::Word;

constexpr int kWidth = 13;  // words of a row: who, which, and numbers that follow from them

struct alignas(64) Memory {
  explicit Memory(int64_t bytes) : lines((bytes + 63) / 64) {}
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  std::vector<Line> lines;
  void* data() { return lines.data(); }
};

void make_row(uint64_t who, uint64_t number, uint64_t* row) {
  row[0] = who, row[1] = number;
  for (int i = 2; i < kWidth; ++i) row[i] = (who << 40 ^ number) * 0x9E3779B97F4A7C15u + i;
}

bool whole(const uint64_t* row) {
  uint64_t wanted[kWidth];
  make_row(row[0], row[1], wanted);
  return std::memcmp(row, wanted, sizeof(wanted)) == 0;
}

// Writers and a reader at full speed in a small ring, where they meet all the time.
void ring_rows_are_whole() {
  constexpr int kWriters = 4, kRows = 40'000, kBatch = 7;
  const std::vector<int64_t> fields = {8, 8, 8 * (kWidth - 2)};
  Memory memory(Ring::memory_bytes(64, fields));
  Ring ring(memory.data(), 64, fields);
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      std::vector<uint64_t> who(kBatch), which(kBatch), rest(kBatch * (kWidth - 2));
      for (int first = 0; first < kRows; first += kBatch) {
        for (int i = 0; i < kBatch; ++i) {
          uint64_t row[kWidth];
          make_row(w, first + i, row);
          who[i] = row[0], which[i] = row[1];
          std::copy(row + 2, row + kWidth, &rest[i * (kWidth - 2)]);
        }
        ring.write(w, {(char*)who.data(), (char*)which.data(), (char*)rest.data()}, kBatch);
      }
      --writing;
    });
  }
  std::vector<uint64_t> who(128), which(128), rest(128 * (kWidth - 2));
  int64_t read = 0;
  for (uint64_t batch = 0; writing > 0 || batch < 4; ++batch) {
    const std::vector<char*> to = {(char*)who.data(), (char*)which.data(), (char*)rest.data()};
    const int64_t misses = ring.sample(to, 0, 128, 0, 32, 5, (uint32_t)batch);
    if (misses < 0) continue;  // nothing yet
    for (int i = 0; i < 128; ++i) {
      uint64_t row[kWidth] = {who[i], which[i]};
      std::copy(&rest[i * (kWidth - 2)], &rest[(i + 1) * (kWidth - 2)], row + 2);
      HEADRACE_CHECK(whole(row), "a torn row of writer %d", (int)who[i]);
      ++read;
    }
  }
  for (std::thread& thread : threads) thread.join();
  HEADRACE_CHECK(read > 0, "nothing was read");
}

// A writer that stops within a row costs that slot, and no other, until it is repaired.
void stopped_writers_cost_one_slot() {
  const std::vector<int64_t> fields = {8};
  Memory memory(Ring::memory_bytes(8, fields));
  Ring ring(memory.data(), 8, fields);
  uint64_t value[8] = {0, 1, 2, 3, 4, 5, 6, 7}, out[64];
  HEADRACE_CHECK(ring.sample({(char*)out}, 0, 1, 0, 1, 0, 0) == -1, "an empty ring gave a row");
  ring.write(1, {(char*)value}, 8);
  HEADRACE_CHECK(ring.claim(11, 2), "slot 3 was not to be had");
  for (int lap = 0; lap < 3; ++lap) ring.write(1, {(char*)value}, 8);
  HEADRACE_CHECK(ring.copy({(char*)out}, 0, 8) == 7, "more or less than one slot was lost");
  HEADRACE_CHECK(ring.sample({(char*)out}, 0, 64, 0, 16, 0, 0) > 0,
                 "the busy slot was not passed over");
  HEADRACE_CHECK(ring.repair(1) == 0, "another's slot was freed");
  HEADRACE_CHECK(ring.repair(2) == 1, "the slot was not freed");
  for (int lap = 0; lap < 2; ++lap) ring.write(1, {(char*)value}, 8);
  HEADRACE_CHECK(ring.copy({(char*)out}, 0, 8) == 8, "the slot was not used again");
  HEADRACE_CHECK(!ring.claim(3, 2), "a writer overtaken by a lap overwrote what is newer");
}

void weights_are_whole() {
  constexpr int kCount = 1001, kVersions = 20'000, kReaders = 3;
  Memory memory(Weights::memory_bytes(kCount));
  Weights weights(memory.data(), kCount);
  std::vector<float> own(kCount);
  HEADRACE_CHECK(weights.read(own.data()) == 0, "there was a version before the first");
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int r = 0; r < kReaders; ++r) {
    threads.emplace_back([&] {
      std::vector<float> copy(kCount);
      Word last = 0;
      while (!done) {
        const Word version = weights.read(copy.data());
        HEADRACE_CHECK(version >= last, "versions went back");
        last = version;
        for (float one : copy) HEADRACE_CHECK(one == (float)version, "a torn vector");
      }
    });
  }
  for (int v = 1; v <= kVersions; ++v) {
    std::fill(own.begin(), own.end(), (float)v);
    HEADRACE_CHECK(weights.publish(own.data()) == (Word)v, "another version");
    if (v % 64 == 0) std::this_thread::yield();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
  ring_rows_are_whole();
  stopped_writers_cost_one_slot();
  weights_are_whole();
  std::puts("channels: all well");
}
