// SPDX-License-Identifier: Apache-2.0
// A ring of rows in shared memory: several writers, one reader, no lock.
//
// Memory: a head, then `capacity` slots. A slot is a word of state and the row's fields, packed,
// and is filled up to whole lines of the cache where that costs an eighth at most.
//
// Who may do what. Any number of processes write, each under an owner number that no other living
// process uses, each from one thread. One process reads, from any number of threads. Nobody waits
// for anybody: a writer overwrites the oldest rows, a reader that meets a row being written takes
// another one. `repair(owner)` may be called once it is certain that this owner's process has ended
// and before a new one takes the number.
//
// A slot's state is (ticket, owner, busy); 0 is a slot never filled. Tickets come from one counter,
// so that no state ever comes back, and a comparison of states has no ABA problem.
//
// A writer takes a ticket, which names a slot, and makes that slot busy by a compare-and-swap from
// a state that is not busy and older than its ticket. Where it fails, because another writer is in
// the slot, was killed in it, or has overtaken this one by a whole lap, it takes another ticket. So
// one writer at most is in a slot, and one killed there leaves it busy until it is repaired: that
// slot is all it costs. A ticket never used leaves its slot as it was, an older row or none.
//
// Memory order.
//   writer:  W1 CAS busy (acquire)  W2 fence(release)  W3 row (relaxed)  W4 state (store release)
//   reader:  R1 state (load acquire)  R2 row (relaxed)  R3 fence(acquire)  R4 state (relaxed)
// R1 reads what W4 stored: the row as a whole happens before R2. If any load of R2 reads a word of
// a later writer's W3, the fences W2 and R3 synchronise, so that writer's W1 happens before R4, and
// R4 sees another state than R1: the row is thrown away. W1 acquires W4 of the slot's previous
// writer, so that the stores of two writers to one row are ordered as their tickets are. No
// argument rests on what one processor does: it holds for arm64 as for x86-64. (ThreadSanitizer
// does not know fences; as all accesses are atomic it has nothing to report, and the stress tests
// check sums over rows.)
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "../core/philox.hpp"
#include "words.hpp"

namespace headrace::channels {

class Ring {
 public:
  static constexpr int kOwnerBits = 16;

  Ring(void* memory, int64_t capacity, std::vector<int64_t> field_bytes)
      : head_((Word*)memory),
        slots_((Word*)memory + kLine / kWord),
        capacity_(capacity),
        field_bytes_(std::move(field_bytes)),
        row_words_(row_words(field_bytes_)),
        slot_words_(slot_words(row_words_)) {}

  static int64_t memory_bytes(int64_t capacity, const std::vector<int64_t>& field_bytes) {
    return kLine + capacity * slot_words(row_words(field_bytes)) * kWord;
  }

  int64_t capacity() const { return capacity_; }
  const std::vector<int64_t>& field_bytes() const { return field_bytes_; }

  // How many slots may have rows: those that are neither empty nor busy do.
  int64_t fill() const { return (int64_t)std::min<Word>(head(), (Word)capacity_); }

  // Tickets taken so far.
  Word head() const { return load(head_, std::memory_order_acquire); }

  // ---- writers ----

  // `fields[f]` holds `count` rows of that field.
  void write(Word owner, const std::vector<const char*>& fields, int64_t count) {
    const std::atomic_ref<Word> head(*head_);
    const Word first = head.fetch_add((Word)count, std::memory_order_relaxed);
    for (int64_t row = 0; row < count; ++row) {
      Word own = first + (Word)row;
      while (!claim(own, owner)) own = head.fetch_add(1, std::memory_order_relaxed);
      fill_slot(own, owner, fields, row);
    }
  }

  // Frees what a writer that has ended left busy; returns how many slots that were.
  int64_t repair(Word owner) {
    int64_t freed = 0;
    for (int64_t i = 0; i < capacity_; ++i) {
      const Word state = load(slot(i), std::memory_order_relaxed);
      if (busy(state) && owner_of(state) == owner) {
        store(slot(i), 0, std::memory_order_release);
        ++freed;
      }
    }
    return freed;
  }

  // Makes a slot busy as its writer does, and no more: for tests, a writer killed at this point.
  bool claim(Word ticket, Word owner) {
    const std::atomic_ref<Word> state(*slot((int64_t)(ticket % (Word)capacity_)));
    Word seen = state.load(std::memory_order_relaxed);
    if (busy(seen) || (seen != 0 && ticket_of(seen) > ticket)) return false;
    if (!state.compare_exchange_strong(seen, pack(ticket, owner, true), std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
      return false;
    }
    std::atomic_thread_fence(std::memory_order_release);
    return true;
  }

  // ---- the reader ----

  // Draws batch `batch` of `size` rows, uniformly from those there are, into rows `into`... of
  // `fields`: lanes `first` to `last` - 1 of it, of which each is four rows. Which rows are drawn
  // is headrace.learn.replay's to say: row i is word i / lanes of block i % lanes, counter (block,
  // batch, 0, stream), and the remainder of it by how many rows there are. A row that is being
  // written is drawn again with the third word of the counter raised. Returns how often that was,
  // -1 if there is no row to be had.
  int64_t sample(const std::vector<char*>& fields, int64_t into, int64_t size, int64_t first,
                 int64_t last, uint64_t seed, uint32_t batch) const {
    const auto fill = (uint64_t)this->fill();
    if (fill == 0) return -1;
    const int64_t lanes = (size + 3) / 4;
    // Small rows are read four at a time: what was just stored word by word cannot be loaded in
    // larger pieces before it has reached the cache.
    const int64_t together = row_words_ <= kLocalWords ? 4 : 1;
    std::vector<Word> scratch(together * row_words_);
    std::array<uint64_t, 4> ahead[kAhead];  // indices drawn, whose rows are on their way
    const auto draw = [&](int64_t lane) {
      const PhiloxWords words = block(seed, batch, lane, 0);
      for (int w = 0; w < 4; ++w) prefetch(ahead[lane % kAhead][w] = words[w] % fill);
    };
    for (int64_t lane = first; lane < std::min(first + kAhead, last); ++lane) draw(lane);
    int64_t misses = 0;
    for (int64_t lane = first; lane < last; ++lane) {
      const std::array<uint64_t, 4> indices = ahead[lane % kAhead];
      if (lane + kAhead < last) draw(lane + kAhead);
      const int64_t rows = std::min<int64_t>(4, (size - lane + lanes - 1) / lanes);
      for (int64_t from = 0; from < rows; from += together) {
        const int64_t to = std::min(from + together, rows);
        for (int64_t w = from; w < to; ++w) {
          Word* const row = &scratch[(w - from) * row_words_];
          uint64_t index = indices[w];
          for (uint32_t attempt = 1; !read(index, row); ++attempt, ++misses) {
            if (attempt > kDraws + fill) return -1;
            index =
                attempt < kDraws ? block(seed, batch, lane, attempt)[w] % fill : (index + 1) % fill;
          }
        }
        for (int64_t w = from; w < to; ++w) {
          unpack(&scratch[(w - from) * row_words_], fields, into + w * lanes + lane);
        }
      }
    }
    return misses;
  }

  // Copies the whole rows among slots `first` to `last` - 1, oldest slot first, to the beginning of
  // `fields`; returns how many there are.
  int64_t copy(const std::vector<char*>& fields, int64_t first, int64_t last) const {
    std::vector<Word> scratch(row_words_);
    int64_t count = 0;
    for (int64_t i = first; i < last; ++i) {
      if (read((uint64_t)i, scratch.data())) unpack(scratch.data(), fields, count++);
    }
    return count;
  }

 private:
  static constexpr uint32_t kDraws = 64;  // before looking at every slot in turn
  static constexpr int64_t kAhead = 4;    // lanes
  static constexpr uint32_t kReplayStream = 16;

  static int64_t row_words(const std::vector<int64_t>& field_bytes) {
    int64_t bytes = 0;
    for (int64_t field : field_bytes) bytes += field;
    return words_for(bytes);
  }

  // The state, the row, and what makes whole lines of the cache where that costs little.
  static int64_t slot_words(int64_t row_words) {
    constexpr int64_t line = kLine / kWord;
    const int64_t words = 1 + row_words, lines = (words + line - 1) / line * line;
    return 8 * (lines - words) <= words ? lines : words;
  }

  static Word pack(Word ticket, Word owner, bool busy) {
    return (ticket + 1) << (kOwnerBits + 1) | owner << 1 | (Word)busy;
  }
  static bool busy(Word state) { return state & 1; }
  static Word owner_of(Word state) { return state >> 1 & ((1 << kOwnerBits) - 1); }
  static Word ticket_of(Word state) { return (state >> (kOwnerBits + 1)) - 1; }

  static PhiloxWords block(uint64_t seed, uint32_t batch, int64_t lane, uint32_t attempt) {
    return philox_words({(uint32_t)lane, batch, attempt, kReplayStream}, (uint32_t)seed,
                        (uint32_t)(seed >> 32));
  }

  // Rows are far apart: asked for early, they are there in time. (Always inlined: to GCC a function
  // that does nothing else has no effect, and a call of it is left out.)
  [[gnu::always_inline]] inline void prefetch(uint64_t index) const {
    const auto* row = (const char*)slot((int64_t)index);
    const int64_t bytes = std::min<int64_t>((1 + row_words_) * kWord, 512);
    for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(row + at);
    __builtin_prefetch(row + bytes - 1);  // a line more, where slots are not whole lines
  }

  Word* slot(int64_t index) const { return slots_ + index * slot_words_; }

  void fill_slot(Word ticket, Word owner, const std::vector<const char*>& fields, int64_t row) {
    Word* const at = slot((int64_t)(ticket % (Word)capacity_));
    Word packed[kLocalWords];
    std::vector<Word> large;
    Word* own = packed;
    if (row_words_ > kLocalWords) {
      large.resize(row_words_);
      own = large.data();
    }
    auto* to = (char*)own;
    for (size_t f = 0; f < fields.size(); ++f) {
      std::memcpy(to, fields[f] + row * field_bytes_[f], field_bytes_[f]);
      to += field_bytes_[f];
    }
    std::memset(to, 0, (char*)(own + row_words_) - to);
    copy_in(at + 1, own, row_words_ * kWord);
    store(at, pack(ticket, owner, false), std::memory_order_release);
  }

  bool read(uint64_t index, Word* row) const {
    const Word* const at = slot((int64_t)index);
    const Word before = load(at, std::memory_order_acquire);
    if (before == 0 || busy(before)) return false;
    copy_out(row, at + 1, row_words_ * kWord);
    std::atomic_thread_fence(std::memory_order_acquire);
    return load(at, std::memory_order_relaxed) == before;
  }

  // Fields are a few bytes: a call of memcpy for each would cost more than the copying. The last
  // piece overlaps the one before it.
  static void copy_field(char* to, const char* from, int64_t bytes) {
    if (bytes > 512) {
      std::memcpy(to, from, bytes);
    } else if (bytes >= 16) {
      for (int64_t at = 0; at < bytes - 16; at += 16) std::memcpy(to + at, from + at, 16);
      std::memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else if (bytes >= 8) {
      std::memcpy(to, from, 8);
      std::memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes >= 4) {
      std::memcpy(to, from, 4);
      std::memcpy(to + bytes - 4, from + bytes - 4, 4);
    } else {
      for (int64_t at = 0; at < bytes; ++at) to[at] = from[at];
    }
  }

  void unpack(const Word* row, const std::vector<char*>& fields, int64_t to) const {
    const auto* from = (const char*)row;
    for (size_t f = 0; f < fields.size(); ++f) {
      copy_field(fields[f] + to * field_bytes_[f], from, field_bytes_[f]);
      from += field_bytes_[f];
    }
  }

  static constexpr int64_t kLocalWords = 256;

  Word* head_;
  Word* slots_;
  int64_t capacity_;
  std::vector<int64_t> field_bytes_;
  int64_t row_words_, slot_words_;
};

}  // namespace headrace::channels
