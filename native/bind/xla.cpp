// SPDX-License-Identifier: Apache-2.0
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

// One SAME_STEP step of n environments. XLA's shapes were made by headrace.envs.native, which is
// the border; only the size of the batch is read here.
ffi::Error run_step(StepPlan* plan, ffi::AnyBuffer state, ffi::AnyBuffer actions,
                    ffi::Result<ffi::AnyBuffer> new_state, ffi::Result<ffi::AnyBuffer> observation,
                    ffi::Result<ffi::AnyBuffer> reward, ffi::Result<ffi::AnyBuffer> terminated,
                    ffi::Result<ffi::AnyBuffer> truncated,
                    ffi::Result<ffi::AnyBuffer> next_observation,
                    ffi::Result<ffi::AnyBuffer> episode_return,
                    ffi::Result<ffi::AnyBuffer> episode_length) {
  if (new_state->untyped_data() != state.untyped_data()) {
    __builtin_memcpy(new_state->untyped_data(), state.untyped_data(), state.size_bytes());
  }
  Rollout job;
  job.state = new_state->untyped_data();
  job.n = reward->dimensions()[0];
  job.max_steps = plan->max_steps;
  job.threads = plan->threads;
  job.actions = actions.untyped_data();
  job.observation = (float*)observation->untyped_data();
  job.reward = (float*)reward->untyped_data();
  job.terminated = (uint8_t*)terminated->untyped_data();
  job.truncated = (uint8_t*)truncated->untyped_data();
  job.next_observation = (float*)next_observation->untyped_data();
  job.episode_return = (float*)episode_return->untyped_data();
  job.episode_length = (int32_t*)episode_length->untyped_data();
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

XLA_FFI_DEFINE_HANDLER(kRunStep, run_step,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::State<StepPlan>>()
                           .Arg<ffi::AnyBuffer>()
                           .Arg<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>());

}  // namespace

void bind_xla(nb::module_& m) {
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
