// SPDX-License-Identifier: Apache-2.0
// The border of native/learn/ppo.hpp, for headrace.learn.ppo_host.
#include "../learn/ppo.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>

#include "checks.hpp"
#include "parts.hpp"
#include "thread_scratch.hpp"

namespace headrace::bind {

namespace {

// Its fields are checked, and `update` checks the arrays against them.
class PpoSteps {
 public:
  PpoSteps(int inputs, const std::vector<int>& hidden, int outputs, bool separate, bool continuous,
           bool tanh, float value_weight, float entropy_weight, float max_grad_norm,
           bool normalise_advantages, std::array<float, 3> adam) {
    ppo_ = find_ppo();
    if (!ppo_) throw std::runtime_error("this processor does not run it: see has_ppo()");
    if (inputs < 1 || outputs < 1 || hidden.empty() || (int)hidden.size() >= kMlpDepth)
      throw nb::value_error("a network has 1 to 7 hidden layers, inputs and outputs");
    form_ = {inputs, outputs, (int)hidden.size(), {}, separate, continuous, tanh};
    for (size_t l = 0; l < hidden.size(); ++l) {
      if (hidden[l] < 1 || hidden[l] % 32)
        throw nb::value_error("hidden layers have widths that are multiples of 32");
      form_.hidden[l] = hidden[l];
    }
    settings_ = {0,       0,       value_weight, entropy_weight,      max_grad_norm,
                 adam[0], adam[1], adam[2],      normalise_advantages};
  }

  std::array<double, kPpoMetrics> update(const Array& params, const Array& mean,
                                         const Array& square, float count, const ConstArray& obs,
                                         const ConstArray& action, const ConstArray& log_prob,
                                         const ConstArray& advantage,
                                         const ConstArray& value_target,
                                         const std::optional<ConstArray>& mask,
                                         const ConstArray& dealt, int64_t block,
                                         float learning_rate, float clip) const {
    PpoUpdate job = {};
    job.network = form_;
    job.settings = settings_;
    job.settings.learning_rate = learning_rate;
    job.settings.clip = clip;
    const int64_t size = ppo_parameters(form_);
    job.params = (float*)checked<float>(params, "params", {size});
    job.mean = (float*)checked<float>(mean, "mean", {size});
    job.square = (float*)checked<float>(square, "square", {size});
    job.count = count;
    const int64_t samples = log_prob.ndim() == 1 ? (int64_t)log_prob.shape(0) : -1;
    read_samples(job, samples, obs, action, log_prob, advantage, value_target, mask);
    read_order(job, samples, dealt, block);
    job.scratch = scratch(ppo_->scratch_bytes(job));
    {
      nb::gil_scoped_release others_may_run;
      ppo_->update(job);
    }
    std::array<double, kPpoMetrics> metrics;
    std::copy(job.metrics, job.metrics + kPpoMetrics, metrics.begin());
    return metrics;
  }

 private:
  void read_samples(PpoUpdate& job, int64_t count, const ConstArray& obs, const ConstArray& action,
                    const ConstArray& log_prob, const ConstArray& advantage,
                    const ConstArray& value_target, const std::optional<ConstArray>& mask) const {
    PpoSamples& samples = job.samples;
    samples.obs = (const float*)checked<float>(obs, "obs", {count, form_.inputs});
    samples.log_prob = (const float*)checked<float>(log_prob, "log_prob", {count});
    samples.advantage = (const float*)checked<float>(advantage, "advantage", {count});
    samples.value_target = (const float*)checked<float>(value_target, "value_target", {count});
    if (form_.continuous) {
      samples.drawn = (const float*)checked<float>(action, "action", {count, form_.outputs});
      return;
    }
    samples.choice = (const int32_t*)checked<int32_t>(action, "action", {count});
    for (int64_t i = 0; i < count; ++i)
      if ((uint32_t)samples.choice[i] >= (uint32_t)form_.outputs)
        throw nb::value_error("action: a choice is none of the outputs");
    if (!mask) return;
    samples.mask_bytes = (form_.outputs + 7) / 8;
    samples.mask = (const uint8_t*)checked<uint8_t>(*mask, "mask", {count, samples.mask_bytes});
  }

  static void read_order(PpoUpdate& job, int64_t samples, const ConstArray& dealt, int64_t block) {
    const int64_t rows = dealt.ndim() == 2 ? (int64_t)dealt.shape(0) : -1;
    const int64_t columns = dealt.ndim() == 2 ? (int64_t)dealt.shape(1) : -1;
    job.dealt = (const int64_t*)checked<int64_t>(dealt, "dealt", {rows, columns});
    job.minibatches = rows;
    job.blocks = columns;
    job.block = block;
    if (rows < 1 || columns < 1 || block < 1 || samples % block)
      throw nb::value_error("dealt: there must be minibatches, of whole blocks of samples");
    for (int64_t i = 0; i < rows * columns; ++i)
      if ((uint64_t)job.dealt[i] >= (uint64_t)(samples / block))
        throw nb::value_error("dealt: a block is none of the samples'");
  }

  const Ppo* ppo_;
  PpoNetwork form_;
  PpoSettings settings_;
};

}  // namespace

void bind_ppo(nb::module_& m) {
  nb::class_<PpoSteps>(m, "PpoSteps", "The minibatches of PPO's updates, one after another.")
      .def(nb::init<int, const std::vector<int>&, int, bool, bool, bool, float, float, float, bool,
                    std::array<float, 3>>(),
           nb::arg("inputs"), nb::arg("hidden"), nb::arg("outputs"), nb::arg("separate"),
           nb::arg("continuous"), nb::arg("tanh"), nb::arg("value_weight"),
           nb::arg("entropy_weight"), nb::arg("max_grad_norm"), nb::arg("normalise_advantages"),
           nb::arg("adam"))
      .def("update", &PpoSteps::update, nb::arg("params"), nb::arg("mean"), nb::arg("square"),
           nb::arg("count"), nb::arg("obs"), nb::arg("action"), nb::arg("log_prob"),
           nb::arg("advantage"), nb::arg("value_target"), nb::arg("mask").none(), nb::arg("dealt"),
           nb::arg("block"), nb::arg("learning_rate"), nb::arg("clip"),
           "Steps params, and Adam's moments of them, in place; returns the metrics' means.");
  m.def("has_ppo", [] { return find_ppo() != nullptr; }, "Whether this processor runs `PpoSteps`.");
}

}  // namespace headrace::bind
