// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 for one counter, in plain C++: the generator of rng.hpp where no lanes are at hand.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

using PhiloxWords = std::array<uint32_t, 4>;

constexpr PhiloxWords philox_words(PhiloxWords c, uint32_t key_low, uint32_t key_high) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = (uint64_t)c[0] * 0xD2511F53u, second = (uint64_t)c[2] * 0xCD9E8D57u;
    c = {(uint32_t)(second >> 32) ^ c[1] ^ key_low, (uint32_t)second,
         (uint32_t)(first >> 32) ^ c[3] ^ key_high, (uint32_t)first};
    key_low += 0x9E3779B9u;
    key_high += 0xBB67AE85u;
  }
  return c;
}

}  // namespace headrace
