// SPDX-License-Identifier: Apache-2.0
// What the kernels promise, without Python: the same bits from every instruction set, width, number
// of threads and fused length; nothing touched beyond the arrays (under AddressSanitizer); the
// three ways of resetting.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "arithmetic.hpp"
#include "check.hpp"
#include "resets.hpp"
#include "rollouts.hpp"

namespace headrace::testing {
namespace {

struct Set {
  std::string name;
  KernelTable kernels;
  Arithmetic arithmetic;
};

std::vector<Set> all_sets() {
  std::vector<Set> sets = {{"scalar", scalar::kernels(), scalar::arithmetic()}};
#if defined(__x86_64__)
  Arithmetic (*const arithmetic[])() = {&v2::arithmetic, &v3::arithmetic, &v4::arithmetic};
#else
  Arithmetic (*const arithmetic[])() = {&baseline::arithmetic};
#endif
  for (int s = 0; s < kInstructionSets; ++s) {
    const InstructionSet& set = instruction_sets()[s];
    if (set.supported) sets.push_back({set.name, set.kernels(), arithmetic[s]()});
  }
  return sets;
}

// ---- the building blocks ----

// The known-answer vectors that Random123 publishes for philox4x32-10.
void philox_gives_the_published_numbers(const Set& set) {
  struct Vector {
    uint32_t counter[4], key[2], expected[4];
  };
  constexpr Vector vectors[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},  // digits of pi
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  const int width = set.arithmetic.width;
  for (const Vector& v : vectors) {
    const auto out = exactly<uint32_t>(4 * width);
    set.arithmetic.philox(v.counter, v.key, out.get());
    for (int i = 0; i < 4 * width; ++i) {
      HEADRACE_CHECK(out[i] == v.expected[i / width], "%s: lane %d of word %d is %08x",
                     set.name.c_str(), i % width, i / width, out[i]);
    }
  }
}

// Against libm in double, on a grid over +-8192 and around the multiples of pi / 4, where the
// reduction changes its mind.
void sincos_is_close_and_the_same_everywhere(const std::vector<Set>& sets) {
  std::vector<float> points;
  for (float x = -8192; x <= 8192; x += 0.0517f) points.push_back(x);
  for (int k = -10430; k <= 10430; ++k) {
    float x = (float)(k * 0.78539816339744830962);
    for (int nudge = 0; nudge < 3; ++nudge) points.push_back(x = std::nextafter(x, 1e9f));
  }
  for (float x : {0.0f, -0.0f, 1e-30f, -1e-30f, 1e-4f}) points.push_back(x);
  while (points.size() % 16 != 0) points.push_back(0.5f);

  std::vector<float> reference;
  for (const Set& set : sets) {
    const auto count = (int)points.size();
    std::vector<float> out(2 * points.size());
    for (int i = 0; i < count; i += set.arithmetic.width) {
      set.arithmetic.sincos(&points[i], &out[i], &out[count + i]);
    }
    double worst = 0;
    for (int i = 0; i < count; ++i) {
      worst = std::max(worst, std::abs(out[i] - std::sin((double)points[i])));
      worst = std::max(worst, std::abs(out[count + i] - std::cos((double)points[i])));
    }
    HEADRACE_CHECK(worst < 1.2e-7, "%s: wrong by %g", set.name.c_str(), worst);
    if (reference.empty()) reference = out;
    HEADRACE_CHECK(std::memcmp(reference.data(), out.data(), out.size() * sizeof(float)) == 0,
                   "%s differs from scalar", set.name.c_str());
  }
}

// Every type of integer, at every length up to a few vectors; wrong ones are seen wherever they
// are.
template <class From, class To>
void narrow_from(const char* isa, NarrowFrom<From, To> narrow, int choices,
                 std::initializer_list<std::type_identity_t<From>> wrong) {
  const int64_t top = std::min<int64_t>(choices - 1, std::numeric_limits<From>::max());
  for (int64_t count = 1; count < 100; ++count) {
    const auto from = exactly<From>(count);
    const auto to = exactly<To>(count);
    const auto right = [top](int64_t i) { return top - i % 5; };
    for (int64_t i = 0; i < count; ++i) from[i] = (From)right(i);
    HEADRACE_CHECK(narrow(from.get(), count, choices, to.get()), "%s", isa);
    for (int64_t i = 0; i < count; ++i) HEADRACE_CHECK(to[i] == right(i), "%s", isa);
    for (From value : wrong) {
      for (int64_t at = 0; at < count; ++at) {
        const From was = from[at];
        from[at] = value;
        HEADRACE_CHECK(!narrow(from.get(), count, choices, to.get()), "%s", isa);
        from[at] = was;
      }
    }
  }
}

void narrowing_checks_every_action() {
  for (int s = 0; s < kInstructionSets; ++s) {
    const InstructionSet& set = instruction_sets()[s];
    if (!set.supported) continue;
    const NarrowTo<uint8_t> bytes = set.narrow().to_bytes;
    narrow_from(set.name, bytes.from_int64, 5, {5, 255, 256, -1, 1ll << 32, 1ll << 62});
    narrow_from(set.name, bytes.from_int32, 5, {5, 256, -1, -256, 1 << 30});
    narrow_from(set.name, bytes.from_uint32, 5, {5, 256, ~0u});
    narrow_from(set.name, bytes.from_int16, 5, {5, 256, -1, -256});
    narrow_from(set.name, bytes.from_uint16, 5, {5, 256, 0xffff});
    narrow_from(set.name, bytes.from_int8, 5, {5, 127, -1, -128});
    narrow_from(set.name, bytes.from_uint8, 5, {5, 128, 255});
    const NarrowTo<uint16_t> halves = set.narrow().to_halves;
    narrow_from(set.name, halves.from_int64, 4672, {4672, 65535, 65536, -1, 1ll << 32, 1ll << 62});
    narrow_from(set.name, halves.from_int32, 4672, {4672, 65536, -1, -65536, 1 << 30});
    narrow_from(set.name, halves.from_uint32, 4672, {4672, 65536, ~0u});
    narrow_from(set.name, halves.from_int16, 4672, {4672, 32767, -1, -256});
    narrow_from(set.name, halves.from_uint16, 4672, {4672, 0xffff});
    narrow_from(set.name, halves.from_int8, 4672, {-1, -128});
    narrow_from(set.name, halves.from_uint8, 4672, {});
  }
}

// ---- the kernels ----

struct Case {
  const char* env;
  int64_t option;
  int64_t n;
  int64_t steps;
};

void every_way_gives_the_same_bits(const std::vector<Set>& sets, const Case& c) {
  const auto scalar = make_kernel(sets[0].kernels, c.env, c.option);
  for (Autoreset mode : {Autoreset::next_step, Autoreset::same_step, Autoreset::disabled}) {
    const Record expected =
        roll(*scalar, c.n, {.autoreset = mode, .steps = c.steps, .fused = c.steps});
    HEADRACE_CHECK(!expected.ends.empty(), "%s n=%d: no episode ended", c.env, (int)c.n);
    for (const Set& set : sets) {
      const auto kernel = make_kernel(set.kernels, c.env, c.option);
      for (int64_t fused : {(int64_t)1, (int64_t)8, c.steps}) {
        for (int threads : {1, 2}) {
          for (const Bytes* actions : {(const Bytes*)nullptr, &expected.actions}) {
            const Plan plan{.autoreset = mode,
                            .steps = c.steps,
                            .fused = fused,
                            .threads = threads,
                            .actions = actions};
            HEADRACE_CHECK(roll(*kernel, c.n, plan) == expected,
                           "%s %s n=%d autoreset=%d fused=%d threads=%d %s actions", c.env,
                           set.name.c_str(), (int)c.n, (int)mode, (int)fused, threads,
                           actions ? "given" : "random");
          }
        }
      }
    }
  }
}

// Nothing asked for but the state: nothing else is written, and the state is what it would be.
void outputs_are_optional(const std::vector<Set>& sets, const Case& c) {
  const auto scalar = make_kernel(sets[0].kernels, c.env, c.option);
  const Record expected = roll(*scalar, c.n, {.steps = c.steps, .fused = c.steps});
  for (const Set& set : sets) {
    const auto kernel = make_kernel(set.kernels, c.env, c.option);
    const Environments envs(*kernel, c.n);
    kernel->run({.state = envs.data(), .n = c.n, .steps = c.steps, .max_steps = 13});
    Bytes state;
    append(state, envs.data(), envs.words * c.n);
    HEADRACE_CHECK(state == expected.state, "%s %s n=%d", c.env, set.name.c_str(), (int)c.n);
  }
}

// A masked reset begins episodes where the mask says and nowhere else, and observes everyone.
void reset_heeds_its_mask(const std::vector<Set>& sets, const Case& c) {
  for (const Set& set : sets) {
    const auto kernel = make_kernel(set.kernels, c.env, c.option);
    const int64_t width = kernel->description().observation_bytes();
    const Environments envs(*kernel, c.n, /*reset=*/false);
    const auto everyone = exactly<uint8_t>(c.n * width);
    const auto observation = exactly<uint8_t>(c.n * width);
    kernel->reset({.state = envs.data(), .n = c.n});
    kernel->run({.state = envs.data(), .n = c.n, .steps = 3, .autoreset = Autoreset::disabled});
    const auto where = exactly<uint8_t>(c.n);
    kernel->reset(
        {.state = envs.data(), .n = c.n, .where = where.get(), .observation = everyone.get()});
    for (int64_t i = 0; i < c.n; ++i) where[i] = i % 3 == 1;
    kernel->reset(
        {.state = envs.data(), .n = c.n, .where = where.get(), .observation = observation.get()});
    for (int64_t i = 0; i < c.n; ++i) {
      const bool same = std::memcmp(&everyone[i * width], &observation[i * width], width) == 0;
      HEADRACE_CHECK(same == !where[i] && envs.book(kEpisode, i) == 1u + where[i], "%s %s n=%d",
                     c.env, set.name.c_str(), (int)c.n);
    }
  }
}

int run_all() {
  const auto sets = all_sets();
  for (const Set& set : sets) {
    philox_gives_the_published_numbers(set);
    resets_come_when_they_should(set.kernels, set.name.c_str());
  }
  sincos_is_close_and_the_same_everywhere(sets);
  narrowing_checks_every_action();

  std::vector<Case> cases;
  for (int64_t n : {1, 3, 8, 17, 1000}) {
    cases.push_back({"CartPole-v1", 0, n, 64});
    cases.push_back({"Pendulum-v1", 0, n, 64});
    cases.push_back({"Memory-v0", 64, n, 64});
    if (n < 100) cases.push_back({"Memory-v0", 4096, n, 64});
  }
  cases.push_back({"CartPole-v1", 0, 4500, 16});  // two threads even for one step
  cases.push_back({"Memory-v0", 4096, 70, 16});
  cases.push_back({"Chess-v0", 1, 70, 16});
  for (int64_t observation : {0, 1}) {  // planes, compact
    cases.push_back({"Chess-v0", observation, 5, 32});
    cases.push_back({"ChessVsRandom-v0", observation, 5, 32});
  }
  for (const Case& c : cases) {
    every_way_gives_the_same_bits(sets, c);
    outputs_are_optional(sets, c);
    reset_heeds_its_mask(sets, c);
  }
  std::printf("all is well on");
  for (const Set& set : sets) std::printf(" %s", set.name.c_str());
  std::printf("\n");
  return 0;
}

}  // namespace
}  // namespace headrace::testing

int main() { return headrace::testing::run_all(); }
