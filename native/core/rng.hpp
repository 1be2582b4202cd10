// SPDX-License-Identifier: Apache-2.0
// Randomness that depends on nothing but what it is for.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A block of
// four words is a pure function of
//     key     = the 64-bit seed
//     counter = (environment index, low, high, stream)
// so it is the same whatever thread, rank, block or call asks for it. The streams:
//     reset    high = episode,        low = block within the reset
//     action   draw d of the environment's life: block d / 4 as (low, high), word d % 4
//              (2-, 4-, 16- and 256-way choices take 1-, 2-, 4- and 8-bit fields of the block;
//              a choice among the legal actions always takes a word)
//     step     high = episode,        low = step of the episode, for what chance does in a step
// The maps from words to values, in every language the same:
//     uniform  (word >> 8) * 2^-24                 in [0, 1)
//     choice   (word * n) >> 32                    in 0 .. n-1; of n legal actions that one,
//                                                  counted from the smallest
#pragma once

#include "env.hpp"
#include "lanes.hpp"

namespace headrace::HEADRACE_ISA {

// How many bits of a block one random action takes; 0: a word for each component.
constexpr int choice_bits(const Description& describe) {
  if (describe.action_kind != ActionKind::discrete || describe.masked) return 0;
  switch (describe.action_size) {
    case 2:
      return 1;
    case 4:
      return 2;
    case 16:
      return 4;
    case 256:
      return 8;
    default:
      return 0;
  }
}

constexpr uint64_t draws_per_block(const Description& describe) {
  return choice_bits(describe) ? 128 / choice_bits(describe) : 4;
}

enum Stream : uint32_t { kResetStream = 0, kActionStream = 1, kStepStream = 3 };

HEADRACE_INLINE int32_t choice(uint32_t word, int32_t n) {
  return (int32_t)(((uint64_t)word * (uint32_t)n) >> 32);
}

template <class U>
struct WidePair {
  U high, low;
};

// The 64-bit products of all lanes with one multiplier: those of the even lanes, those of the odd
// ones, and then the halves interleaved.
template <class L>
HEADRACE_INLINE WidePair<typename L::u32> multiply_wide(typename L::u32 a, uint32_t multiplier) {
  using u32 = typename L::u32;
#if defined(__AVX512F__)
  if constexpr (L::width == 16) {
    const __m512i factor = _mm512_set1_epi64(multiplier);
    const __m512i even = _mm512_mul_epu32((__m512i)a, factor);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), factor);
    return {(u32)_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB),
            (u32)_mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA)};
  }
#endif
#if defined(__AVX2__)
  if constexpr (L::width == 8) {
    const __m256i factor = _mm256_set1_epi64x(multiplier);
    const __m256i even = _mm256_mul_epu32((__m256i)a, factor);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), factor);
    return {(u32)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa),
            (u32)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa)};
  }
#endif
#if defined(__SSE4_1__)
  if constexpr (L::width == 4) {
    const __m128i factor = _mm_set1_epi64x(multiplier);
    const __m128i even = _mm_mul_epu32((__m128i)a, factor);
    const __m128i odd = _mm_mul_epu32(_mm_srli_epi64((__m128i)a, 32), factor);
    return {(u32)_mm_blend_epi16(_mm_srli_epi64(even, 32), odd, 0xcc),
            (u32)_mm_blend_epi16(even, _mm_slli_epi64(odd, 32), 0xcc)};
  }
#endif
  u32 high, low = a * multiplier;
  for (int l = 0; l < L::width; ++l) high[l] = (uint32_t)(((uint64_t)a[l] * multiplier) >> 32);
  return {high, low};
}

template <class U>
struct Block {
  U word[4];
};

template <class L>
HEADRACE_INLINE Block<typename L::u32> philox(Block<typename L::u32> counter,
                                              typename L::u32 key_low, typename L::u32 key_high) {
  for (int round = 0; round < 10; ++round) {
    auto first = multiply_wide<L>(counter.word[0], 0xD2511F53u);
    auto second = multiply_wide<L>(counter.word[2], 0xCD9E8D57u);
    counter = {second.high ^ counter.word[1] ^ key_low, second.low,
               first.high ^ counter.word[3] ^ key_high, first.low};
    key_low += 0x9E3779B9u;
    key_high += 0xBB67AE85u;
  }
  return counter;
}

template <class L>
HEADRACE_INLINE typename L::f32 unit_interval(typename L::u32 word) {
  // 24 bits fit a signed conversion, which every instruction set has.
  return convert<typename L::f32>(bits<typename L::i32>(word >> 8)) * 5.9604644775390625e-8f;
}

// Who an environment is: the part of its state that all its randomness hangs on.
template <class L>
struct Identity {
  typename L::u32 index, seed_low, seed_high;
};

// The draws of one reset, in order.
template <class L>
class ResetDraws {
 public:
  HEADRACE_INLINE ResetDraws(const Identity<L>& who, typename L::u32 episode)
      : who_(who), episode_(episode) {}

  HEADRACE_INLINE typename L::u32 word() {
    if (used_ % 4 == 0) {
      typename L::u32 zero = {};
      block_ = philox<L>({who_.index, zero + used_ / 4, episode_, zero + (uint32_t)kResetStream},
                         who_.seed_low, who_.seed_high);
    }
    return block_.word[used_++ % 4];
  }

  HEADRACE_INLINE typename L::f32 uniform(float low, float high) {
    return low + (high - low) * unit_interval<L>(word());
  }

 private:
  Identity<L> who_;
  typename L::u32 episode_;
  Block<typename L::u32> block_;
  uint32_t used_ = 0;
};

// The four words that chance has in one step of one environment.
class StepDraws {
  using L = Lanes<1>;

 public:
  StepDraws(const Identity<L>& who, uint32_t episode, uint32_t step)
      : who_(who), episode_(episode), step_(step) {}

  uint32_t word() {
    if (used_ == 0) {
      block_ = philox<L>({who_.index, L::u32{step_}, L::u32{episode_}, L::u32{kStepStream}},
                         who_.seed_low, who_.seed_high);
    }
    return block_.word[used_++][0];
  }

 private:
  Identity<L> who_;
  uint32_t episode_, step_;
  Block<L::u32> block_;
  int used_ = 0;
};

}  // namespace headrace::HEADRACE_ISA
