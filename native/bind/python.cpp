// SPDX-License-Identifier: Apache-2.0
// The module headrace._native.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bound_rollout.hpp"
#include "parts.hpp"

namespace headrace::bind {

const InstructionSet& find_isa(const std::string& name) {
  std::string known;
  for (int i = 0; i < kInstructionSets; ++i) {
    const InstructionSet& set = instruction_sets()[i];
    if (name == set.name && set.supported) return set;
    if (set.supported) known += std::string(known.empty() ? "" : ", ") + set.name;
  }
  throw nb::value_error(("instruction set '" + name + "' is not available on this processor; " +
                         "available: " + known)
                            .c_str());
}

namespace {

std::vector<std::string> supported_isas() {
  std::vector<std::string> out;
  for (int i = 0; i < kInstructionSets; ++i) {
    if (instruction_sets()[i].supported) out.emplace_back(instruction_sets()[i].name);
  }
  return out;
}

std::vector<std::string> env_names() {
  std::vector<std::string> out;
  const KernelTable table = instruction_sets()[0].kernels();
  for (int i = 0; i < table.count; ++i) out.emplace_back(table.entries[i].description->name);
  return out;
}

int option_count(const Description& describe) {
  int count = 0;
  while (count < kMaxOptions && describe.options[count].name != nullptr) ++count;
  return count;
}

int64_t read_number(const Option& option, nb::handle given) {
  int64_t value;
  if (nb::try_cast(given, value)) return value;
  throw nb::type_error((std::string(option.name) + " must be an integer").c_str());
}

int64_t read_word(const Option& option, nb::handle given) {
  std::string known;
  for (int64_t value = 0; value < kMaxWords && option.words[value]; ++value) {
    std::string word;
    if (nb::try_cast(given, word) && word == option.words[value]) return value;
    known += std::string(value ? " or '" : "'") + option.words[value] + "'";
  }
  throw nb::value_error((std::string(option.name) + " is " +
                         nb::cast<std::string>(nb::repr(given)) + "; it must be " + known)
                            .c_str());
}

std::vector<int64_t> read_options(const Description& describe, nb::dict given) {
  std::vector<int64_t> values;
  size_t used = 0;
  for (int i = 0; i < option_count(describe); ++i) {
    const Option& option = describe.options[i];
    int64_t value = option.fallback;
    if (given.contains(option.name)) {
      ++used;
      value = option.words[0] ? read_word(option, given[option.name])
                              : read_number(option, given[option.name]);
    }
    if (value < option.low || value > option.high || value % option.multiple_of != 0) {
      throw nb::value_error((std::string(option.name) + " is " + std::to_string(value) +
                             "; it must be a multiple of " + std::to_string(option.multiple_of) +
                             " from " + std::to_string(option.low) + " to " +
                             std::to_string(option.high))
                                .c_str());
    }
    values.push_back(value);
  }
  if (used == given.size()) return values;
  for (auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    bool known = false;
    for (int i = 0; i < option_count(describe); ++i) known |= name == describe.options[i].name;
    if (!known) {
      throw nb::value_error((std::string(describe.name) + " has no option '" + name + "'").c_str());
    }
  }
  return values;
}

NativeEnv make_env(const std::string& name, nb::dict options, const std::string& isa) {
  const InstructionSet& set = find_isa(isa);
  const KernelTable table = set.kernels();
  for (int i = 0; i < table.count; ++i) {
    const KernelEntry& entry = table.entries[i];
    if (name != entry.description->name) continue;
    auto values = read_options(*entry.description, options);
    std::shared_ptr<const Kernel> kernel(entry.make(values.data()));
    return {std::move(kernel), std::move(values), set.name};
  }
  throw nb::key_error(("there is no native environment '" + name + "'").c_str());
}

std::vector<float> bounds(const float* values, int count) { return {values, values + count}; }

// How many fields have bounds of their own; bytes are 0 to 255.
int bounded(const Description& describe) {
  return describe.observation_kind == ObservationKind::bytes ? 0 : describe.observation_size;
}

void reset_env(const NativeEnv& env, Array state, Array observation, std::optional<Array> where,
               std::optional<Array> mask, std::optional<Array> to_play) {
  const Description& describe = env.description();
  const auto n = (int64_t)(observation.ndim() > 0 ? observation.shape(0) : 0);
  Reset job;
  job.n = n;
  job.observation = checked_observation(observation, "observation", describe, {n});
  job.state = env.checked_state(state, n);
  if (where) job.where = (const uint8_t*)checked<uint8_t>(*where, "where", {n});
  if (mask && describe.masked) {
    job.mask = (uint8_t*)checked<uint8_t>(*mask, "mask", {n, describe.mask_bytes()});
  }
  if (to_play && describe.players > 1) {
    job.to_play = (uint8_t*)checked<uint8_t>(*to_play, "to_play", {n});
  }
  nb::gil_scoped_release release;
  env.kernel->reset(job);
}

void advance_env(const NativeEnv& env, Array state, int64_t num_envs, int64_t steps, uint64_t clock,
                 int64_t max_episode_steps, int threads) {
  if (num_envs < 1 || steps < 1 || threads < 1) {
    throw nb::value_error("num_envs, steps and threads must be at least 1");
  }
  Rollout job;
  job.n = num_envs;
  job.steps = steps;
  job.state = env.checked_state(state, num_envs);
  job.max_steps = max_episode_steps;
  job.clock = clock;
  job.threads = threads;
  nb::gil_scoped_release release;
  env.kernel->run(job);
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Headrace's native core: batched, fused environment kernels.";
  m.def("supported_isas", &supported_isas, "Instruction sets this processor runs, plainest first.");
  m.def("env_names", &env_names, "Environments compiled into the core.");
  m.attr("BOOKKEEPING") = nb::make_tuple("elapsed", "episode", "return", "pending", "index",
                                         "seed_low", "seed_high", "unused");

  nb::enum_<Autoreset>(m, "Autoreset")
      .value("NEXT_STEP", Autoreset::next_step)
      .value("SAME_STEP", Autoreset::same_step)
      .value("DISABLED", Autoreset::disabled);

  nb::class_<NativeEnv>(m, "NativeEnv", "One environment's kernel, its options fixed.")
      .def(
          "__init__",
          [](NativeEnv* self, const std::string& name, nb::dict options, const std::string& isa) {
            new (self) NativeEnv(make_env(name, options, isa));
          },
          nb::arg("name"), nb::arg("options"), nb::arg("isa"))
      .def_prop_ro("name", [](const NativeEnv& e) { return e.description().name; })
      .def_prop_ro("isa", [](const NativeEnv& e) { return e.isa; })
      .def_prop_ro("version", [](const NativeEnv& e) { return e.description().version; })
      .def_prop_ro("layout",
                   [](const NativeEnv& e) {
                     return e.description().layout == Layout::lanes ? "lanes" : "rows";
                   })
      .def_prop_ro("option_values", [](const NativeEnv& e) { return e.options; })
      .def_prop_ro("state_bytes", [](const NativeEnv& e) { return e.kernel->state_bytes(); })
      .def("state_shape", &NativeEnv::state_shape, nb::arg("num_envs"))
      .def_prop_ro("observation_shape",
                   [](const NativeEnv& e) { return observation_shape(e.description()); })
      .def_prop_ro("observation_dtype",
                   [](const NativeEnv& e) {
                     const bool bytes = e.description().observation_kind == ObservationKind::bytes;
                     return bytes ? "uint8" : "float32";
                   })
      .def_prop_ro("observation_low",
                   [](const NativeEnv& e) {
                     const auto& d = e.description();
                     return bounds(d.observation_low, bounded(d));
                   })
      .def_prop_ro("observation_high",
                   [](const NativeEnv& e) {
                     const auto& d = e.description();
                     return bounds(d.observation_high, bounded(d));
                   })
      .def_prop_ro(
          "discrete",
          [](const NativeEnv& e) { return e.description().action_kind == ActionKind::discrete; })
      .def_prop_ro("action_size", [](const NativeEnv& e) { return e.description().action_size; })
      .def_prop_ro("action_low", [](const NativeEnv& e) { return e.description().action_low; })
      .def_prop_ro("action_high", [](const NativeEnv& e) { return e.description().action_high; })
      .def_prop_ro(
          "masked", [](const NativeEnv& e) { return e.description().masked; },
          "Whether some actions may be illegal: then there is a mask.")
      .def_prop_ro("players", [](const NativeEnv& e) { return e.description().players; })
      .def_prop_ro("max_episode_steps",
                   [](const NativeEnv& e) { return e.description().max_episode_steps; })
      .def("reset", &reset_env, nb::arg("state"), nb::arg("observation"),
           nb::arg("where") = nb::none(), nb::arg("mask") = nb::none(),
           nb::arg("to_play") = nb::none(),
           "Begins new episodes where `where` is set; writes what there is to see of all.")
      .def("advance", &advance_env, nb::arg("state"), nb::kw_only(), nb::arg("num_envs"),
           nb::arg("steps"), nb::arg("clock"), nb::arg("max_episode_steps"), nb::arg("threads"),
           "Random steps from `clock` on, with resets, of which nothing is written but the state.");

  nb::class_<BoundRollout>(m, "BoundRollout",
                           "Steps of environments whose buffers were checked once.")
      .def(nb::init<const NativeEnv&, Array, Array, Array, Array, Array, std::optional<Array>,
                    std::optional<Array>, std::optional<Array>, std::optional<Array>,
                    std::optional<Array>, std::optional<Array>, std::optional<Array>,
                    std::optional<Array>, std::optional<Array>, Autoreset, int64_t, int>(),
           nb::arg("env"), nb::kw_only(), nb::arg("state"), nb::arg("observation"),
           nb::arg("reward"), nb::arg("terminated"), nb::arg("truncated"),
           nb::arg("final_observation") = nb::none(), nb::arg("ended_at") = nb::none(),
           nb::arg("episode_return") = nb::none(), nb::arg("episode_length") = nb::none(),
           nb::arg("drawn") = nb::none(), nb::arg("mask") = nb::none(),
           nb::arg("final_mask") = nb::none(), nb::arg("to_play") = nb::none(),
           nb::arg("final_to_play") = nb::none(), nb::arg("autoreset"),
           nb::arg("max_episode_steps"), nb::arg("threads"))
      .def("step", &BoundRollout::step, nb::arg("actions"),
           "One step with actions [num_envs, ...]; returns how many episodes ended.")
      .def("run", &BoundRollout::run, nb::arg("first"), nb::arg("count"), nb::arg("ends"),
           nb::arg("actions") = nb::none(), nb::arg("clock") = 0,
           "Steps first to first + count, with actions [count, num_envs, ...] ([num_envs, ...] for "
           "one) or random ones; returns how many ended episodes are listed now.");

  bind_channels(m);
  bind_chess(m);
  bind_draws(m);
  bind_limits(m);
  bind_mlp(m);
  bind_moves(m);
  bind_ppo(m);
  bind_residual(m);
  bind_xla(m);
}

}  // namespace headrace::bind
