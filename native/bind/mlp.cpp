// SPDX-License-Identifier: Apache-2.0
// The networks of native/learn inside XLA programs. headrace.learn.native_mlp is the border: it
// made the shapes, which are not checked again here.
#include "../learn/mlp.hpp"

#include <algorithm>
#include <cstring>
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

// Several networks of the same form over the same rows, which are divided among threads as well
// where there are more of those. (So sums over rows depend on the number of threads; on their
// timing they do not.)
struct Call {
  const Mlp* mlp;
  int nets, depth, parts;
  int64_t rows, inputs;
  std::vector<DenseLayer> layers;  // [nets, depth]

  int jobs() const { return nets * parts; }
  int64_t out() const { return layers[depth - 1].out; }
  const DenseLayer* net(int n) const { return &layers[n * depth]; }
  int64_t first_row(int part) const {
    const int64_t blocks = (rows + kMlpBlock - 1) / kMlpBlock;
    return std::min(rows, blocks * part / parts * kMlpBlock);
  }
};

float* floats(ffi::AnyBuffer buffer) { return (float*)buffer.untyped_data(); }
ffi::AnyBuffer argument(ffi::RemainingArgs& arguments, size_t at) {
  return arguments.get<ffi::AnyBuffer>(at).value();
}
float* result(ffi::RemainingRets& results, size_t at) {
  return (float*)(*results.get<ffi::AnyBuffer>(at).value()).untyped_data();
}

// x, then a weight and a bias for each layer of each network.
ffi::ErrorOr<Call> read(ffi::RemainingArgs& arguments, int64_t nets, int64_t depth, bool bf16,
                        int64_t threads) {
  Call call;
  call.mlp = find_mlp(bf16);
  if (!call.mlp || depth < 2 || depth > kMlpDepth)
    return ffi::Unexpected(ffi::Error::InvalidArgument("no such networks on this processor"));
  const auto x = argument(arguments, 0).dimensions();
  call.nets = (int)nets;
  call.depth = (int)depth;
  call.rows = x[0];
  call.inputs = x[1];
  for (int64_t i = 0; i < nets * depth; ++i) {
    const auto weight = argument(arguments, 1 + 2 * i);
    const auto shape = weight.dimensions();
    call.layers.push_back(
        {floats(weight), floats(argument(arguments, 2 + 2 * i)), (int)shape[0], (int)shape[1]});
  }
  const int64_t blocks = (call.rows + kMlpBlock - 1) / kMlpBlock;
  call.parts = (int)std::clamp<int64_t>(threads / nets, 1, std::max<int64_t>(blocks, 1));
  return call;
}

// Results: the outputs [nets, rows, out], and with `keep` hidden layers [nets, rows, width] each.
ffi::Error forward(ffi::ThreadPool pool, ffi::RemainingArgs arguments, ffi::RemainingRets results,
                   int64_t nets, int64_t depth, bool bf16, bool keep) {
  auto read_call = read(arguments, nets, depth, bf16, pool.num_threads());
  if (!read_call) return read_call.error();
  const Call& call = *read_call;
  run_jobs(pool, call.jobs(), [&](int number) {
    const int net = number / call.parts, part = number % call.parts;
    const int64_t first = call.first_row(part);
    void* hidden[kMlpDepth] = {};
    MlpForward job = {};
    job.layers = call.net(net);
    job.depth = call.depth;
    job.rows = call.first_row(part + 1) - first;
    job.x = floats(argument(arguments, 0)) + first * call.inputs;
    job.out = result(results, 0) + (net * call.rows + first) * call.out();
    for (int l = 0; keep && l < call.depth - 1; ++l)
      hidden[l] = (char*)result(results, 1 + l) +
                  (net * call.rows + first) * job.layers[l].out * call.mlp->hidden_bytes;
    job.hidden = keep ? hidden : nullptr;
    job.scratch = scratch(call.mlp->scratch_bytes(job.layers, call.depth));
    call.mlp->forward(job);
  });
  return ffi::Error::Success();
}

// Behind forward's arguments: its hidden layers, and the gradient of its outputs. Results: with
// `params` those of every weight and bias, with `inputs` that of the inputs from `first_input` on,
// [nets, rows, inputs - first_input].
ffi::Error backward(ffi::ThreadPool pool, ffi::RemainingArgs arguments, ffi::RemainingRets results,
                    int64_t nets, int64_t depth, bool bf16, bool params, bool inputs,
                    int64_t first_input) {
  auto read_call = read(arguments, nets, depth, bf16, pool.num_threads());
  if (!read_call) return read_call.error();
  const Call& call = *read_call;
  const size_t first_hidden = 1 + 2 * call.layers.size();
  int64_t numbers = 0;  // in one network's parameters
  for (int l = 0; l < call.depth; ++l)
    numbers += (int64_t)(call.layers[l].in + 1) * call.layers[l].out;
  // The first part's sums are the results; the others' are added to them, in their order.
  float* others = nullptr;
  std::unique_ptr<float[]> owner;
  if (params && call.parts > 1) {
    owner.reset(new float[numbers * nets * (call.parts - 1)]);
    others = owner.get();
  }
  const auto gradient_at = [&](int net, int part, int64_t offset, size_t at) {
    if (part == 0) return result(results, 2 * net * call.depth + at);
    return others + (net * (call.parts - 1) + part - 1) * numbers + offset;
  };
  run_jobs(pool, call.jobs(), [&](int number) {
    const int net = number / call.parts, part = number % call.parts;
    const int64_t first = call.first_row(part), row = net * call.rows + first;
    const void* hidden[kMlpDepth] = {};
    float *weights[kMlpDepth], *biases[kMlpDepth];
    MlpBackward job = {};
    job.layers = call.net(net);
    job.depth = call.depth;
    job.rows = call.first_row(part + 1) - first;
    job.x = floats(argument(arguments, 0)) + first * call.inputs;
    for (int l = 0; l < call.depth - 1; ++l)
      hidden[l] = (const char*)argument(arguments, first_hidden + l).untyped_data() +
                  row * job.layers[l].out * call.mlp->hidden_bytes;
    job.hidden = hidden;
    job.out_gradient =
        floats(argument(arguments, first_hidden + call.depth - 1)) + row * call.out();
    if (params) {
      int64_t offset = 0;
      for (int l = 0; l < call.depth; ++l) {
        const DenseLayer& layer = job.layers[l];
        weights[l] = gradient_at(net, part, offset, 2 * l);
        offset += (int64_t)layer.in * layer.out;
        biases[l] = gradient_at(net, part, offset, 2 * l + 1);
        offset += layer.out;
      }
      job.weight_gradient = weights;
      job.bias_gradient = biases;
    }
    if (inputs) {
      const size_t at = params ? 2 * call.layers.size() : 0;
      job.first_input = (int)first_input;
      job.x_gradient = result(results, at) + row * (call.inputs - first_input);
    }
    job.scratch = scratch(call.mlp->scratch_bytes(job.layers, call.depth));
    call.mlp->backward(job);
  });
  for (int net = 0; others && net < call.nets; ++net)
    for (int part = 1; part < call.parts; ++part) {
      const float* from = gradient_at(net, part, 0, 0);
      for (int l = 0; l < call.depth; ++l)
        for (int b = 0; b < 2; ++b) {
          const DenseLayer& layer = call.net(net)[l];
          const int64_t count = (int64_t)(b ? 1 : layer.in) * layer.out;
          float* to = gradient_at(net, 0, 0, 2 * l + b);
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
                           .Attr<int64_t>("nets")
                           .Attr<int64_t>("depth")
                           .Attr<bool>("bf16")
                           .Attr<bool>("keep"));
XLA_FFI_DEFINE_HANDLER(kBackward, backward,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::ThreadPool>()
                           .RemainingArgs()
                           .RemainingRets()
                           .Attr<int64_t>("nets")
                           .Attr<int64_t>("depth")
                           .Attr<bool>("bf16")
                           .Attr<bool>("params")
                           .Attr<bool>("inputs")
                           .Attr<int64_t>("first_input"));

}  // namespace

void bind_mlp(nb::module_& m) {
  m.def(
      "mlp_handlers",
      [] {
        nb::dict out;
        out["forward"] = nb::capsule((void*)kForward);
        out["backward"] = nb::capsule((void*)kBackward);
        return out;
      },
      "For jax.ffi.register_ffi_target.");
  m.def(
      "has_mlp", [](bool bf16) { return find_mlp(bf16) != nullptr; }, nb::arg("bf16"),
      "Whether this processor runs them, in float32 or with bfloat16 between hidden layers.");
}

}  // namespace headrace::bind
