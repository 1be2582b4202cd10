// SPDX-License-Identifier: Apache-2.0
// Policies over legal moves (native/learn) inside XLA programs. headrace.learn.native_moves is the
// border: it made the shapes, which are not checked again here.
#include "../learn/moves.hpp"

#include <algorithm>
#include <memory>

#include "parts.hpp"
#include "team.hpp"
#include "thread_scratch.hpp"
#include "xla/ffi/api/ffi.h"

namespace headrace::bind {

namespace {

namespace nb = nanobind;
namespace ffi = xla::ffi;

using Floats = ffi::Buffer<ffi::F32>;
using Actions = ffi::Buffer<ffi::S32>;
using Masks = ffi::Buffer<ffi::U8>;

// Boards whose gradients are summed by themselves; those sums are then added in their order.
constexpr int64_t kPart = 32;

// Part by part on all threads: `work(part, its first board, its boards as a job)`.
template <class Work>
ffi::Error in_parts(ffi::ThreadPool& pool, Floats& features, Floats& weight, Floats& bias,
                    Masks& mask, Work work) {
  const MovePolicy* policy = find_move_policy();
  if (!policy) return ffi::Error::InvalidArgument("no such policy on this processor");
  const int64_t boards = features.dimensions()[0], bytes = kMoves / 8;
  const int channels = (int)features.dimensions()[3];
  run_jobs(pool, (int)((boards + kPart - 1) / kPart), [&](int part) {
    const int64_t first = part * kPart;
    const Moves job = {features.typed_data() + first * 64 * channels,
                       weight.typed_data(),
                       bias.typed_data(),
                       mask.typed_data() + first * bytes,
                       channels,
                       std::min(kPart, boards - first),
                       scratch(policy->scratch_bytes(channels))};
    work(*policy, part, first, job);
  });
  return ffi::Error::Success();
}

ffi::Error choose(ffi::ThreadPool pool, Floats features, Floats weight, Floats bias, Masks mask,
                  Floats uniform, ffi::Result<Actions> action, bool likeliest) {
  return in_parts(pool, features, weight, bias, mask,
                  [&](const MovePolicy& policy, int, int64_t first, const Moves& job) {
                    policy.choose(job, likeliest ? nullptr : uniform.typed_data() + first,
                                  action->typed_data() + first);
                  });
}

ffi::Error judge(ffi::ThreadPool pool, Floats features, Floats weight, Floats bias, Masks mask,
                 Actions action, ffi::Result<Floats> log_prob, ffi::Result<Floats> entropy) {
  return in_parts(pool, features, weight, bias, mask,
                  [&](const MovePolicy& policy, int, int64_t first, const Moves& job) {
                    policy.judge(job, action.typed_data() + first, log_prob->typed_data() + first,
                                 entropy->typed_data() + first);
                  });
}

ffi::Error gradients(ffi::ThreadPool pool, Floats features, Floats weight, Floats bias, Masks mask,
                     Actions action, Floats of_log_prob, Floats of_entropy,
                     ffi::Result<Floats> of_features, ffi::Result<Floats> of_weight,
                     ffi::Result<Floats> of_bias) {
  const int64_t boards = features.dimensions()[0], parts = (boards + kPart - 1) / kPart;
  const int64_t weights = weight.element_count(), numbers = weights + kMoveKinds;
  const std::unique_ptr<float[]> sums(new float[parts * numbers]);
  const int64_t board = 64 * features.dimensions()[3];
  const ffi::Error error = in_parts(
      pool, features, weight, bias, mask,
      [&](const MovePolicy& policy, int part, int64_t first, const Moves& job) {
        float* own = sums.get() + part * numbers;
        policy.gradients(job, action.typed_data() + first,
                         {of_log_prob.typed_data() + first, of_entropy.typed_data() + first,
                          of_features->typed_data() + first * board, own, own + weights});
      });
  std::fill_n(of_weight->typed_data(), weights, 0.f);
  std::fill_n(of_bias->typed_data(), kMoveKinds, 0.f);
  for (int64_t part = 0; error.success() && part < parts; ++part) {
    const float* own = sums.get() + part * numbers;
    for (int64_t i = 0; i < weights; ++i) of_weight->typed_data()[i] += own[i];
    for (int64_t i = 0; i < kMoveKinds; ++i) of_bias->typed_data()[i] += own[weights + i];
  }
  return error;
}

auto with_board() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .Arg<Floats>()
      .Arg<Floats>()
      .Arg<Floats>()
      .Arg<Masks>();
}

XLA_FFI_DEFINE_HANDLER(kChoose, choose,
                       with_board().Arg<Floats>().Ret<Actions>().Attr<bool>("likeliest"));
XLA_FFI_DEFINE_HANDLER(kJudge, judge, with_board().Arg<Actions>().Ret<Floats>().Ret<Floats>());
XLA_FFI_DEFINE_HANDLER(kGradients, gradients,
                       with_board()
                           .Arg<Actions>()
                           .Arg<Floats>()
                           .Arg<Floats>()
                           .Ret<Floats>()
                           .Ret<Floats>()
                           .Ret<Floats>());

}  // namespace

void bind_moves(nb::module_& m) {
  m.def(
      "move_handlers",
      [] {
        nb::dict out;
        out["choose"] = nb::capsule((void*)kChoose);
        out["judge"] = nb::capsule((void*)kJudge);
        out["gradients"] = nb::capsule((void*)kGradients);
        return out;
      },
      "For jax.ffi.register_ffi_target.");
  m.def(
      "has_moves", [] { return find_move_policy() != nullptr; },
      "Whether this processor runs them.");
}

}  // namespace headrace::bind
