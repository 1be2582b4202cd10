// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "parts.hpp"
#include "xla/ffi/api/ffi.h"

namespace headrace::bind {

namespace {

namespace nb = nanobind;
namespace ffi = xla::ffi;

// What a compiled program keeps of one call: the kernel, found once when the program is made. Names
// and options, not addresses, are in the program, so that it can be cached on disk.
struct StepPlan {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  std::unique_ptr<const Kernel> kernel;
  int64_t max_steps = 0;
  int threads = 1;
};
ffi::TypeId StepPlan::id = {};
ffi::TypeInfo StepPlan::info = ffi::MakeTypeInfo<StepPlan>();

ffi::ErrorOr<std::unique_ptr<StepPlan>> make_plan(std::string_view env, std::string_view isa,
                                                  ffi::Span<const int64_t> options,
                                                  int64_t max_steps, int64_t threads) {
  for (int s = 0; s < kInstructionSets; ++s) {
    const InstructionSet& set = instruction_sets()[s];
    if (isa != set.name || !set.supported) continue;
    const KernelTable table = set.kernels();
    for (int i = 0; i < table.count; ++i) {
      if (env != table.entries[i].description->name) continue;
      auto plan = std::make_unique<StepPlan>();
      plan->kernel.reset(table.entries[i].make(options.begin()));
      plan->max_steps = max_steps;
      plan->threads = (int)threads;
      return plan;
    }
  }
  return ffi::Unexpected(ffi::Error::InvalidArgument("no native environment " + std::string(env) +
                                                     " for instruction set " + std::string(isa)));
}

ffi::Error illegal(const Description& describe, const Rollout& job, int64_t env) {
  const int action = describe.action_bytes() == 1 ? ((const uint8_t*)job.actions)[env]
                                                  : ((const uint16_t*)job.actions)[env];
  return ffi::Error::InvalidArgument("action " + std::to_string(action) +
                                     " is illegal now in environment " + std::to_string(env) +
                                     " of " + describe.name);
}

// One SAME_STEP step of n environments: the new state, then what `Step` in headrace.envs.array.base
// holds, in its order. XLA's shapes were made by headrace.envs.native_xla, which is the border;
// only the size of the batch is read here, and what cannot be known before: whether actions are
// legal.
ffi::Error run_step(StepPlan* plan, ffi::RemainingArgs arguments, ffi::RemainingRets results) {
  const Description& describe = plan->kernel->description();
  const auto state = arguments.get<ffi::AnyBuffer>(0).value();
  const auto result = [&](size_t at) { return *results.get<ffi::AnyBuffer>(at).value(); };
  void* new_state = result(0).untyped_data();
  if (new_state != state.untyped_data()) {
    __builtin_memcpy(new_state, state.untyped_data(), state.size_bytes());
  }
  Rollout job;
  job.state = new_state;
  job.n = result(2).dimensions()[0];
  job.max_steps = plan->max_steps;
  job.threads = plan->threads;
  job.actions = arguments.get<ffi::AnyBuffer>(1).value().untyped_data();
  job.observation = result(1).untyped_data();
  job.reward = (float*)result(2).untyped_data();
  job.terminated = (uint8_t*)result(3).untyped_data();
  job.truncated = (uint8_t*)result(4).untyped_data();
  job.next_observation = result(5).untyped_data();
  job.episode_return = (float*)result(6).untyped_data();
  job.episode_length = (int32_t*)result(7).untyped_data();
  size_t at = 8;
  if (describe.masked) {
    job.mask = (uint8_t*)result(at++).untyped_data();
    job.next_mask = (uint8_t*)result(at++).untyped_data();
    const int64_t refused = plan->kernel->refusal(job);
    if (refused >= 0) return illegal(describe, job, refused);
  }
  if (describe.players > 1) {
    job.to_play = (uint8_t*)result(at++).untyped_data();
    job.next_to_play = (uint8_t*)result(at++).untyped_data();
  }
  plan->kernel->run(job);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(kMakePlan, make_plan,
                       ffi::Ffi::BindInstantiate()
                           .Attr<std::string_view>("env")
                           .Attr<std::string_view>("isa")
                           .Attr<ffi::Span<const int64_t>>("options")
                           .Attr<int64_t>("max_steps")
                           .Attr<int64_t>("threads"));

XLA_FFI_DEFINE_HANDLER(
    kRunStep, run_step,
    ffi::Ffi::Bind().Ctx<ffi::State<StepPlan>>().RemainingArgs().RemainingRets());

// When a value was known, in microseconds of a clock that only goes forward, from 0 again after 71
// minutes. The value passes on, so that what needs it comes after the reading.
ffi::Error read_clock(ffi::AnyBuffer value, ffi::Result<ffi::AnyBuffer> same,
                      ffi::ResultBufferR0<ffi::U32> microseconds) {
  if (same->untyped_data() != value.untyped_data()) {
    __builtin_memcpy(same->untyped_data(), value.untyped_data(), value.size_bytes());
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  *microseconds->typed_data() =
      (uint32_t)std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(
    kReadClock, read_clock,
    ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::BufferR0<ffi::U32>>());

}  // namespace

void bind_xla(nb::module_& m) {
  m.def(
      "xla_clock", [] { return nb::capsule((void*)kReadClock); },
      "For jax.ffi.register_ffi_target.");
  m.def(
      "xla_handlers",
      [] {
        nb::dict out;
        out["instantiate"] = nb::capsule((void*)kMakePlan);
        out["execute"] = nb::capsule((void*)kRunStep);
        return out;
      },
      "For jax.ffi.register_ffi_target.");
  m.def(
      "xla_plan_type",
      [] {
        nb::dict out;
        out["type_id"] = nb::capsule((void*)&StepPlan::id);
        out["type_info"] = nb::capsule((void*)&StepPlan::info);
        return out;
      },
      "For jax.ffi.register_ffi_type.");
}

}  // namespace headrace::bind
