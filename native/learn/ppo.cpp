// SPDX-License-Identifier: Apache-2.0
#include "ppo.hpp"

#include <math.h>

#include "distributions.hpp"
#include "scratch.hpp"

namespace headrace::HEADRACE_ISA {

namespace {

// One of the two networks: its layers, where their gradients go, and what a minibatch leaves.
struct Net {
  DenseLayer layers[kMlpDepth];
  float *weights[kMlpDepth], *biases[kMlpDepth];
  float* hidden[kMlpDepth];
  float *out, *back;  // [B, outputs of the last], and their gradient
};

// Gives out a vector of parameters and one of gradients side by side, layer by layer.
struct Layout {
  const float* params;
  float* gradient;
  void layer(Net& net, int l, int in, int out) {
    net.layers[l] = {params, params + (int64_t)in * out, in, out};
    net.weights[l] = gradient;
    net.biases[l] = gradient + (int64_t)in * out;
    params += (int64_t)(in + 1) * out;
    gradient += (int64_t)(in + 1) * out;
  }
};

struct Memory {
  float *obs, *drawn, *log_prob, *advantage, *value_target, *gradient, *probs;
  int32_t* choice;
  const uint8_t** mask;
  Net actor, critic;
  float *head, *head_gradient;  // of a body that both share: the two last layers side by side
  float* log_std_gradient;
  const float* log_std;
  void* networks;
};

int64_t rows_of(const PpoUpdate& job) { return job.blocks * job.block; }

Memory lay_out(const PpoUpdate& job, Scratch& scratch) {
  const PpoNetwork& form = job.network;
  const int64_t rows = rows_of(job), last = form.hidden[form.depth - 1];
  Memory m = {};
  m.obs = scratch.take<float>(rows * form.inputs);
  m.drawn = scratch.take<float>(rows * form.outputs);
  m.probs = scratch.take<float>(rows * form.outputs);
  m.log_prob = scratch.take<float>(rows);
  m.advantage = scratch.take<float>(rows);
  m.value_target = scratch.take<float>(rows);
  m.choice = scratch.take<int32_t>(rows);
  m.mask = scratch.take<const uint8_t*>(rows);
  m.gradient = scratch.take<float>(ppo_parameters(form));
  m.head = scratch.take<float>((last + 1) * (form.outputs + 1));
  m.head_gradient = scratch.take<float>((last + 1) * (form.outputs + 1));
  Layout layout{job.params, m.gradient};
  Net* nets[2] = {&m.actor, &m.critic};
  for (Net* net : nets) {
    net->out = scratch.take<float>(rows * (form.outputs + 1));
    net->back = scratch.take<float>(rows * (form.outputs + 1));
    if (net == &m.critic && !form.separate) break;
    for (int l = 0, in = form.inputs; l < form.depth; in = form.hidden[l++]) {
      net->hidden[l] = scratch.take<float>(rows * form.hidden[l]);
      layout.layer(*net, l, in, form.hidden[l]);
    }
  }
  layout.layer(m.actor, form.depth, (int)last, form.outputs);
  layout.layer(m.critic, form.depth, (int)last, 1);
  m.log_std = layout.params;
  m.log_std_gradient = layout.gradient;
  m.networks = scratch.at;
  return m;
}

void gather(const PpoUpdate& job, const int64_t* dealt, Memory& m) {
  const PpoSamples& from = job.samples;
  const int inputs = job.network.inputs, outputs = job.network.outputs;
  for (int64_t b = 0; b < job.blocks; ++b)
    for (int64_t i = 0; i < job.block; ++i) {
      const int64_t row = dealt[b] * job.block + i, to = b * job.block + i;
      __builtin_memcpy(m.obs + to * inputs, from.obs + row * inputs, sizeof(float) * inputs);
      if (from.drawn)
        __builtin_memcpy(m.drawn + to * outputs, from.drawn + row * outputs,
                         sizeof(float) * outputs);
      else
        m.choice[to] = from.choice[row];
      m.log_prob[to] = from.log_prob[row];
      m.advantage[to] = from.advantage[row];
      m.value_target[to] = from.value_target[row];
      if (from.mask) m.mask[to] = from.mask + row * from.mask_bytes;
    }
  if (!job.settings.normalise_advantages) return;
  const int64_t rows = rows_of(job);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < rows; ++i) sum += m.advantage[i];
  const double mean = sum / rows;
  for (int64_t i = 0; i < rows; ++i) squares += (m.advantage[i] - mean) * (m.advantage[i] - mean);
  const double scale = 1 / (sqrt(squares / rows) + 1e-8);
  for (int64_t i = 0; i < rows; ++i) m.advantage[i] = (float)((m.advantage[i] - mean) * scale);
}

void forward(const PpoUpdate& job, Memory& m, Net& net, const DenseLayer& head, float* out) {
  net.layers[job.network.depth] = head;
  MlpForward pass = {};
  pass.layers = net.layers;
  pass.depth = job.network.depth + 1;
  pass.rows = rows_of(job);
  pass.x = m.obs;
  pass.out = out;
  pass.tanh = job.network.tanh;
  pass.hidden = (void* const*)net.hidden;
  pass.scratch = m.networks;
  mlp().forward(pass);
}

void backward(const PpoUpdate& job, Memory& m, Net& net) {
  MlpBackward pass = {};
  pass.layers = net.layers;
  pass.depth = job.network.depth + 1;
  pass.rows = rows_of(job);
  pass.x = m.obs;
  pass.tanh = job.network.tanh;
  pass.hidden = (const void* const*)net.hidden;
  pass.out_gradient = net.back;
  pass.weight_gradient = net.weights;
  pass.bias_gradient = net.biases;
  pass.scratch = m.networks;
  mlp().backward(pass);
}

// Where the body is one: [in, outputs + 1] of the policy's and the value's, or back from it.
void join_heads(Memory& m, const DenseLayer& policy, const DenseLayer& value) {
  const int outputs = policy.out, both = outputs + 1;
  for (int i = 0; i <= policy.in; ++i) {  // the last row is the bias
    const float* from = i < policy.in ? policy.weight + (int64_t)i * outputs : policy.bias;
    for (int j = 0; j < outputs; ++j) m.head[i * both + j] = from[j];
    m.head[i * both + outputs] = i < policy.in ? value.weight[i] : value.bias[0];
  }
}
void part_heads(Memory& m, int in, int outputs, float* policy, float* value) {
  const int both = outputs + 1;
  for (int i = 0; i <= in; ++i) {
    for (int j = 0; j < outputs; ++j) policy[i * outputs + j] = m.head_gradient[i * both + j];
    value[i] = m.head_gradient[i * both + outputs];
  }
}

// The losses of a minibatch: their metrics are added, the gradients of what the networks gave set.
// `stride` is how far apart a sample's outputs are from the next one's.
void losses(PpoUpdate& job, Memory& m, const float* out, float* back, int stride,
            const float* value, float* value_back, int value_stride) {
  const PpoSettings& by = job.settings;
  const int count = job.network.outputs;
  const int64_t rows = rows_of(job);
  const float one = 1.0f / rows;
  double sums[kPpoMetrics] = {};
  if (job.network.continuous)
    for (int j = 0; j < count; ++j) m.log_std_gradient[j] = -by.entropy_weight;
  for (int64_t i = 0; i < rows; ++i, out += stride, back += stride) {
    float* probs = m.probs + i * count;
    const float* drawn = m.drawn + i * count;
    const uint8_t* mask = job.samples.mask ? m.mask[i] : nullptr;
    const Chance chance = job.network.continuous
                              ? gaussian(out, count, m.log_std, drawn)
                              : categorical(out, count, mask, m.choice[i], probs);
    const float log_ratio = chance.log_prob - m.log_prob[i], ratio = expf(log_ratio);
    const float low = 1 - by.clip, high = 1 + by.clip, advantage = m.advantage[i];
    const float gain = ratio * advantage;
    const float clipped = (ratio < low ? low : ratio > high ? high : ratio) * advantage;
    // Where the clipped gain is the lesser one it is a constant.
    const float of_log_prob = gain <= clipped ? -gain * one : gain > clipped ? 0 : NAN;
    if (job.network.continuous) {
      for (int j = 0; j < count; ++j) {
        const float narrow = expf(-m.log_std[j]), away = (drawn[j] - out[j]) * narrow;
        back[j] = of_log_prob * away * narrow;
        m.log_std_gradient[j] += of_log_prob * (away * away - 1);
      }
    } else {
      const float weight = by.entropy_weight * one;
      for (int j = 0; j < count; ++j) {
        if (mask && !legal(mask, j)) {
          back[j] = 0;
          continue;
        }
        back[j] = of_log_prob * ((j == m.choice[i] ? 1.0f : 0.0f) - probs[j]);
        if (weight != 0 && probs[j] > 0)
          back[j] += weight * probs[j] * (logf(probs[j]) + chance.entropy);
      }
    }
    const float away = value[i * value_stride] - m.value_target[i];
    value_back[i * value_stride] = by.value_weight * one * away;
    sums[0] -= gain < clipped ? gain : clipped;
    sums[1] += 0.5f * away * away;
    sums[2] += chance.entropy;
    sums[3] += ratio - 1 - log_ratio;
    sums[4] += fabsf(ratio - 1) > by.clip;
  }
  for (int k = 0; k < kPpoMetrics; ++k) job.metrics[k] += sums[k] / rows;
}

double squared(const float* v, int64_t size) {
  double sums[16] = {};  // side by side: one after another they would wait for each other
  int64_t i = 0;
  for (; i + 16 <= size; i += 16)
    for (int l = 0; l < 16; ++l) sums[l] += (double)v[i + l] * v[i + l];
  for (; i < size; ++i) sums[0] += (double)v[i] * v[i];
  for (int l = 1; l < 16; ++l) sums[0] += sums[l];
  return sums[0];
}

void step(PpoUpdate& job, const Memory& m, float count) {
  const PpoSettings& by = job.settings;
  const int64_t size = ppo_parameters(job.network);
  const float ratio = by.max_grad_norm / ((float)sqrt(squared(m.gradient, size)) + 1e-6f);
  const float shorter = ratio > 1 ? 1 : ratio;  // a NaN stays one
  const float rate = by.learning_rate / (1 - powf(by.mean_decay, count));
  const float unbias = 1 / (1 - powf(by.square_decay, count));
  for (int64_t i = 0; i < size; ++i) {
    const float g = m.gradient[i] * shorter;
    const float mean = by.mean_decay * job.mean[i] + (1 - by.mean_decay) * g;
    const float square = by.square_decay * job.square[i] + (1 - by.square_decay) * g * g;
    job.mean[i] = mean;
    job.square[i] = square;
    job.params[i] -= rate * mean / (sqrtf(square * unbias) + by.epsilon);
  }
}

void minibatch(PpoUpdate& job, const int64_t* dealt, Memory& m) {
  const PpoNetwork& form = job.network;
  const int last = form.hidden[form.depth - 1];
  const DenseLayer policy = m.actor.layers[form.depth], value = m.critic.layers[form.depth];
  gather(job, dealt, m);
  if (form.separate) {
    forward(job, m, m.actor, policy, m.actor.out);
    forward(job, m, m.critic, value, m.critic.out);
    losses(job, m, m.actor.out, m.actor.back, form.outputs, m.critic.out, m.critic.back, 1);
    backward(job, m, m.actor);
    backward(job, m, m.critic);
    return;
  }
  const int both = form.outputs + 1;
  join_heads(m, policy, value);
  forward(job, m, m.actor, {m.head, m.head + (int64_t)last * both, last, both}, m.actor.out);
  losses(job, m, m.actor.out, m.actor.back, both, m.actor.out + form.outputs,
         m.actor.back + form.outputs, both);
  float *weights = m.actor.weights[form.depth], *biases = m.actor.biases[form.depth];
  m.actor.weights[form.depth] = m.head_gradient;
  m.actor.biases[form.depth] = m.head_gradient + (int64_t)last * both;
  backward(job, m, m.actor);
  m.actor.layers[form.depth] = policy;
  m.actor.weights[form.depth] = weights;
  m.actor.biases[form.depth] = biases;
  part_heads(m, last, form.outputs, weights, m.critic.weights[form.depth]);
}

void update(PpoUpdate& job) {
  Scratch scratch{(char*)job.scratch};
  Memory m = lay_out(job, scratch);
  for (double& metric : job.metrics) metric = 0;
  for (int64_t number = 0; number < job.minibatches; ++number) {
    minibatch(job, job.dealt + number * job.blocks, m);
    step(job, m, job.count + (float)(number + 1));
  }
  for (double& metric : job.metrics) metric /= job.minibatches;
}

size_t scratch_bytes(const PpoUpdate& job) {
  const PpoNetwork& form = job.network;
  const int64_t rows = rows_of(job), last = form.hidden[form.depth - 1];
  int64_t bytes = 64 * 64;  // what pieces are rounded up by
  bytes += 4 * rows * (form.inputs + 6 * (form.outputs + 1) + 4) + 8 * rows;
  bytes += 4 * (ppo_parameters(form) + 2 * (last + 1) * (form.outputs + 1));
  DenseLayer layers[kMlpDepth] = {};
  for (int l = 0, in = form.inputs; l < form.depth; in = form.hidden[l++]) {
    bytes += 2 * 4 * rows * form.hidden[l];
    layers[l] = {nullptr, nullptr, in, form.hidden[l]};
  }
  layers[form.depth] = {nullptr, nullptr, (int)last, form.outputs + 1};
  return bytes + mlp().scratch_bytes(layers, form.depth + 1);
}

}  // namespace

Ppo ppo() { return {&update, &scratch_bytes}; }

}  // namespace headrace::HEADRACE_ISA
