// SPDX-License-Identifier: Apache-2.0
// The towers of native/learn inside XLA programs. headrace.learn.native_residual is the border: it
// made the shapes, which are not checked again here.
#include "../learn/residual.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "parts.hpp"
#include "team.hpp"
#include "thread_scratch.hpp"
#include "xla/ffi/api/ffi.h"

namespace headrace::bind {

namespace {

namespace nb = nanobind;
namespace ffi = xla::ffi;

// Boards whose gradients are summed by themselves; those sums are then added in their order. So
// the bits are the same, however many threads there are.
constexpr int64_t kPart = 32;

struct Call {
  const Towers* towers;
  int64_t boards, planes, channels;
  std::vector<const float*> weights, biases;
  const float* x;

  int layers() const { return (int)weights.size(); }
  Tower tower() const {
    return {weights.data(), biases.data(), (int)planes, (int)channels, (layers() - 1) / 2};
  }
  int64_t board() const { return 64 * channels; }
  int64_t weight_size(int layer) const { return 9 * (layer ? channels : planes) * channels; }
};

float* floats(ffi::RemainingArgs& arguments, size_t at) {
  return (float*)arguments.get<ffi::AnyBuffer>(at).value().untyped_data();
}
float* result(ffi::RemainingRets& results, size_t at) {
  return (float*)(*results.get<ffi::AnyBuffer>(at).value()).untyped_data();
}

// x [boards, 8, 8, planes], then a weight and a bias for each layer.
ffi::ErrorOr<Call> read(ffi::RemainingArgs& arguments, int64_t layers) {
  Call call;
  call.towers = find_towers();
  if (!call.towers)
    return ffi::Unexpected(ffi::Error::InvalidArgument("no such networks on this processor"));
  const auto x = arguments.get<ffi::AnyBuffer>(0).value().dimensions();
  call.boards = x[0];
  call.planes = x[3];
  call.channels = arguments.get<ffi::AnyBuffer>(2).value().dimensions()[0];
  call.x = floats(arguments, 0);
  for (int64_t i = 0; i < layers; ++i) {
    call.weights.push_back(floats(arguments, 1 + 2 * i));
    call.biases.push_back(floats(arguments, 2 + 2 * i));
  }
  return call;
}

// Results: with `keep` the outputs of every layer, else the last one's alone.
ffi::Error forward(ffi::ThreadPool pool, ffi::RemainingArgs arguments, ffi::RemainingRets results,
                   int64_t layers, bool keep) {
  auto read_call = read(arguments, layers);
  if (!read_call) return read_call.error();
  const Call& call = *read_call;
  const int64_t parts = std::clamp<int64_t>(call.boards / 4, 1, pool.num_threads());
  run_jobs(pool, (int)parts, [&](int part) {
    const int64_t first = call.boards * part / parts;
    TowerForward job = {};
    job.tower = call.tower();
    job.boards = call.boards * (part + 1) / parts - first;
    job.x = call.x + first * 64 * call.planes;
    const size_t inner_bytes = keep ? 0 : sizeof(float) * job.boards * call.board();
    char* memory = (char*)scratch(call.towers->scratch_bytes(job.tower, job.boards) + inner_bytes);
    std::vector<float*> outputs(layers);
    for (int l = 0; l < layers; ++l)
      outputs[l] =
          !keep && l % 2 ? (float*)memory : result(results, keep ? l : 0) + first * call.board();
    job.outputs = outputs.data();
    job.scratch = memory + inner_bytes;
    call.towers->forward(job);
  });
  return ffi::Error::Success();
}

// Behind forward's arguments: the outputs of every layer, and the gradient of the last one's.
// Results: those of every weight and bias.
ffi::Error backward(ffi::ThreadPool pool, ffi::RemainingArgs arguments, ffi::RemainingRets results,
                    int64_t layers) {
  auto read_call = read(arguments, layers);
  if (!read_call) return read_call.error();
  const Call& call = *read_call;
  int64_t numbers = 0;  // in all parameters
  for (int l = 0; l < layers; ++l) numbers += call.weight_size(l) + call.channels;
  const int parts = (int)std::max<int64_t>(1, (call.boards + kPart - 1) / kPart);
  // The first part's sums are the results.
  const std::unique_ptr<float[]> others(new float[numbers * (parts - 1)]);
  run_jobs(pool, parts, [&](int part) {
    const int64_t first = part * kPart;
    TowerBackward job = {};
    job.tower = call.tower();
    job.boards = std::min(call.boards - first, kPart);
    job.x = call.x + first * 64 * call.planes;
    std::vector<const float*> outputs(layers);
    std::vector<float*> weights(layers), biases(layers);
    float* other = part ? others.get() + (part - 1) * numbers : nullptr;
    for (int l = 0; l < layers; ++l) {
      outputs[l] = floats(arguments, 1 + 2 * layers + l) + first * call.board();
      weights[l] = part ? other : result(results, 2 * l);
      other += part ? call.weight_size(l) : 0;
      biases[l] = part ? other : result(results, 2 * l + 1);
      other += part ? call.channels : 0;
    }
    job.outputs = outputs.data();
    job.out_gradient = floats(arguments, 1 + 3 * layers) + first * call.board();
    job.weight_gradient = weights.data();
    job.bias_gradient = biases.data();
    job.scratch = scratch(call.towers->scratch_bytes(job.tower, job.boards));
    call.towers->backward(job);
  });
  for (int part = 1; part < parts; ++part) {
    const float* from = others.get() + (part - 1) * numbers;
    for (int at = 0; at < 2 * layers; ++at) {
      const int64_t count = at % 2 ? call.channels : call.weight_size(at / 2);
      float* to = result(results, at);
      for (int64_t i = 0; i < count; ++i) to[i] += from[i];
      from += count;
    }
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(kForward, forward,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::ThreadPool>()
                           .RemainingArgs()
                           .RemainingRets()
                           .Attr<int64_t>("layers")
                           .Attr<bool>("keep"));
XLA_FFI_DEFINE_HANDLER(
    kBackward, backward,
    ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().RemainingArgs().RemainingRets().Attr<int64_t>(
        "layers"));

}  // namespace

void bind_residual(nb::module_& m) {
  m.def(
      "tower_handlers",
      [] {
        nb::dict out;
        out["forward"] = nb::capsule((void*)kForward);
        out["backward"] = nb::capsule((void*)kBackward);
        return out;
      },
      "For jax.ffi.register_ffi_target.");
  m.def("has_towers", [] { return find_towers() != nullptr; }, "Whether this processor runs them.");
}

}  // namespace headrace::bind
