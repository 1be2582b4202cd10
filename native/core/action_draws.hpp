// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rng.hpp"
#include "state_view.hpp"

namespace headrace::HEADRACE_ISA {

// Uniform random actions, as rng.hpp maps them, for one block of environments: Philox is called
// once in as many steps as its 128 bits serve.
template <class Env, class L, int kBlock>
class ActionDraws {
  static constexpr const Description& describe = Env::describe;
  static constexpr int kBits = choice_bits(describe);
  static constexpr uint64_t kDrawsPerBlock = draws_per_block(describe);
  static constexpr int kComponents = describe.action_components();

 public:
  // The words that choose among legal actions in step `clock`, likewise.
  template <class View>
  const uint32_t* draw_words(const View& state, int identity, int64_t count, uint64_t clock) {
    static_assert(describe.masked && kDrawsPerBlock == 4);
    refill(state, identity, count, clock / 4);
    return words_[clock % 4];
  }

  // The actions of step `clock` for the first `count` environments of the block, and those that
  // fill the last vector. `identity` is the view's first word of three.
  template <class View>
  const uint8_t* draw(const View& state, int identity, int64_t count, uint64_t clock) {
    for (int c = 0; c < kComponents; ++c) {
      const uint64_t draw = clock * kComponents + c;
      refill(state, identity, count, draw / kDrawsPerBlock);
      const int place = (int)(draw % kDrawsPerBlock);
      for (int64_t i = 0; i < count; i += L::width) put(i, c, place);
    }
    return actions_;
  }

 private:
  HEADRACE_INLINE void put(int64_t i, int component, int place) {
    using u32 = typename L::u32;
    using i32 = typename L::i32;
    if constexpr (kBits > 0) {
      const int bit = place * kBits;
      const auto word = load<u32>(words_[bit / 32] + i);
      store_bytes<L>(actions_ + i, bits<i32>((word >> (bit % 32)) & ((1u << kBits) - 1)));
    } else if constexpr (describe.action_kind == ActionKind::discrete) {
      const auto word = load<u32>(words_[place] + i);
      store_bytes<L>(actions_ + i, bits<i32>(multiply_wide<L>(word, describe.action_size).high));
    } else {
      constexpr float range = describe.action_high - describe.action_low;
      const auto value =
          describe.action_low + range * unit_interval<L>(load<u32>(words_[place] + i));
      if constexpr (kComponents == 1) {
        store((float*)actions_ + i, value);
      } else {
        for (int l = 0; l < L::width; ++l) {
          ((float*)actions_)[(i + l) * kComponents + component] = value[l];
        }
      }
    }
  }

  template <class View>
  void refill(const View& state, int identity, int64_t count, uint64_t block) {
    if (block == block_) return;
    block_ = block;
    using u32 = typename L::u32;
    for (int64_t i = 0; i < count; i += L::width) {
      const u32 zero = {};
      const auto out = philox<L>({state.template get<u32>(identity, i), zero + (uint32_t)block,
                                  zero + (uint32_t)(block >> 32), zero + (uint32_t)kActionStream},
                                 state.template get<u32>(identity + 1, i),
                                 state.template get<u32>(identity + 2, i));
      for (int w = 0; w < 4; ++w) store(words_[w] + i, out.word[w]);
    }
  }

  uint64_t block_ = ~0ull;
  alignas(64) uint32_t words_[4][kBlock];
  alignas(64) uint8_t actions_[kBlock * kComponents * describe.action_bytes()];
};

}  // namespace headrace::HEADRACE_ISA
