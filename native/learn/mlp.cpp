// SPDX-License-Identifier: Apache-2.0
// Compiled for float32, and once more, with AVX512_BF16, for bfloat16 between hidden layers.
#include "mlp.hpp"

#include "activations.hpp"
#include "matmul.hpp"
#include "scratch.hpp"

namespace headrace::HEADRACE_ISA {

namespace {

#if defined(__AVX512BF16__)
using Between = Bfloat16;
#else
using Between = Float32;
#endif
constexpr int kPair = kNarrow ? 2 : 1;  // numbers in an element of the summed dimension

int wide(int columns) { return (columns + 31) / 32 * 32; }

int widest(const DenseLayer* layers, int depth) {
  int most = 0;
  for (int l = 0; l < depth; ++l) {
    if (layers[l].in > most) most = layers[l].in;
    if (layers[l].out > most) most = layers[l].out;
  }
  return wide(most);
}

bool between(int l, int depth) { return l > 0 && l < depth - 1; }

// ---- from float32 to what products between hidden layers take, and back ----

#if defined(__AVX512BF16__)
HEADRACE_STATIC __m512i to_pairs(__m256i even, __m256i odd) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(even),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
}

// By rows: [rows, columns] numbers in order.
void narrow_rows(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; i += 16)
    _mm256_storeu_si256((__m256i*)(to + i), narrow(_mm512_loadu_ps(from + i)));
}

// Pairs of rows: [rows / 2, columns] elements; a last odd row is paired with zeros.
void pair_rows(const float* from, int rows, int columns, uint32_t* to) {
  for (int i = 0; i < rows; i += 2)
    for (int j = 0; j < columns; j += 16, to += 16) {
      const float* at = from + (int64_t)i * columns + j;
      const __m512 odd = i + 1 < rows ? _mm512_loadu_ps(at + columns) : _mm512_setzero_ps();
      _mm512_storeu_si512(to, to_pairs(narrow(_mm512_loadu_ps(at)), narrow(odd)));
    }
}
void pair_rows(const uint16_t* from, int rows, int columns, uint32_t* to) {
  for (int i = 0; i < rows; i += 2)
    for (int j = 0; j < columns; j += 16, to += 16) {
      const uint16_t* at = from + (int64_t)i * columns + j;
      const __m256i odd = i + 1 < rows ? _mm256_loadu_si256((const __m256i*)(at + columns))
                                       : _mm256_setzero_si256();
      _mm512_storeu_si512(to, to_pairs(_mm256_loadu_si256((const __m256i*)at), odd));
    }
}
#endif
// The weights of one layer, packed for x times them.
void* pack_layer(const DenseLayer& layer, bool narrow_them, Scratch& scratch) {
  auto* packed = scratch.take<uint32_t>((int64_t)(layer.in + 1) * wide(layer.out));
#if defined(__AVX512BF16__)
  if (narrow_them) {
    Scratch after = scratch;
    auto* pairs = after.take<uint32_t>((int64_t)layer.in / 2 * layer.out);
    pair_rows(layer.weight, layer.in, layer.out, pairs);
    pack(pairs, layer.out, layer.in / 2, layer.out, packed);
    return packed;
  }
#endif
  (void)narrow_them;
  pack((const uint32_t*)layer.weight, layer.out, layer.in, layer.out, packed);
  return packed;
}

// The same for a gradient times their transpose, of the inputs from `first` on.
void* pack_layer_transposed(const DenseLayer& layer, int first, bool narrow_them,
                            Scratch& scratch) {
  auto* packed = scratch.take<uint32_t>((int64_t)wide(layer.in) * layer.out);
#if defined(__AVX512BF16__)
  if (narrow_them) {
    Scratch after = scratch;
    auto* rows = after.take<uint16_t>((int64_t)layer.in * layer.out);
    narrow_rows(layer.weight, (int64_t)layer.in * layer.out, rows);
    pack_transposed((const uint32_t*)rows, layer.out / 2, layer.in, layer.out / 2, packed);
    return packed;
  }
#endif
  (void)narrow_them;
  pack_transposed((const uint32_t*)layer.weight + (int64_t)first * layer.out, layer.out,
                  layer.in - first, layer.out, packed);
  return packed;
}

// ---- what is done to a block between two products ----

void add_bias(float* out, const float* bias, int rows, int columns) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) out[(int64_t)i * columns + j] += bias[j];
}

// out [rows, 1] = x [rows, in] weight [in, 1] + bias: a panel would be all but empty.
void one_output(const float* x, const DenseLayer& layer, int rows, float* out) {
  for (int i = 0; i < rows; ++i) {
    __m512 sum = _mm512_setzero_ps();
    for (int k = 0; k < layer.in; k += 16) {
      const __mmask16 some = lanes(layer.in - k);
      sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(some, x + (int64_t)i * layer.in + k),
                            _mm512_maskz_loadu_ps(some, layer.weight + k), sum);
    }
    out[i] = _mm512_reduce_add_ps(sum) + layer.bias[0];
  }
}

void forward(const MlpForward& job) {
  const DenseLayer* layers = job.layers;
  const int depth = job.depth, most = widest(layers, depth);
  Scratch scratch{(char*)job.scratch};
  float* sums[2] = {scratch.take<float>((int64_t)kMlpBlock * most),
                    scratch.take<float>((int64_t)kMlpBlock * most)};
  auto* own_hidden = scratch.take<Hidden>((int64_t)kMlpBlock * most);
  void* packed[kMlpDepth];
  for (int l = 0; l < depth; ++l) packed[l] = pack_layer(layers[l], between(l, depth), scratch);
  for (int64_t first = 0; first < job.rows; first += kMlpBlock) {
    const int rows = (int)(job.rows - first < kMlpBlock ? job.rows - first : kMlpBlock);
    const float* x = job.x + first * layers[0].in;
    const Hidden* narrow_x = nullptr;
    for (int l = 0; l < depth; ++l) {
      const DenseLayer& layer = layers[l];
      const bool last = l == depth - 1;
      float* to = last ? job.out + first * layer.out : sums[l % 2];
      Hidden* hidden = own_hidden;
      if (!last && job.hidden) hidden = (Hidden*)job.hidden[l] + first * layer.out;
      if (!last && !kNarrow) {  // float32 sums are what is kept
        hidden = job.hidden ? hidden : (Hidden*)to;
        to = (float*)hidden;
      }
      if (last && layer.out == 1) {
        one_output(x, layer, rows, to);
        continue;
      }
      const ptrdiff_t panel = (ptrdiff_t)32 * layer.in;
      if (between(l, depth))
        matmul<Between, true, false>(rows, layer.out, layer.in / kPair, narrow_x, layer.in / kPair,
                                     packed[l], panel / kPair, 32, to, layer.out);
      else
        matmul<Float32, true, false>(rows, layer.out, layer.in, x, layer.in, packed[l], panel, 32,
                                     to, layer.out);
      if (last)
        add_bias(to, layer.bias, rows, layer.out);
      else
        (job.tanh ? squash : rectify)(to, layer.bias, rows, layer.out, hidden);
      x = to;
      narrow_x = hidden;
    }
  }
}

// A hidden layer's block as float32.
const float* widen(const Hidden* hidden, int64_t count, float* room) {
  if constexpr (!kNarrow) return (const float*)hidden;
  for (int64_t i = 0; i < count; i += 16) _mm512_storeu_ps(room + i, load(hidden + i));
  return room;
}

void backward(const MlpBackward& job) {
  const DenseLayer* layers = job.layers;
  const int depth = job.depth, most = widest(layers, depth);
  const bool params = job.weight_gradient != nullptr;
  const int64_t room = (int64_t)kMlpBlock * most;
  Scratch scratch{(char*)job.scratch};
  float* gradients[2] = {scratch.take<float>(room), scratch.take<float>(room)};
  auto* widened = scratch.take<float>(room);
  auto* narrow_gradient = scratch.take<uint16_t>(room);
  auto* gradient_pairs = scratch.take<uint32_t>(room / 2);
  auto* hidden_pairs = scratch.take<uint32_t>(room / 2);
  const DenseLayer& head = layers[depth - 1];
  // The last layer's gradient is summed as its transpose: that one has whole vectors.
  auto* head_gradient = scratch.take<float>((int64_t)head.in * head.out);
  void* packed[kMlpDepth] = {};
  for (int l = job.x_gradient ? 0 : 1; l < depth; ++l)
    packed[l] =
        pack_layer_transposed(layers[l], l == 0 ? job.first_input : 0, between(l, depth), scratch);
  if (params) {
    __builtin_memset(head_gradient, 0, sizeof(float) * head.in * head.out);
    for (int l = 0; l < depth; ++l) {
      const DenseLayer& layer = layers[l];
      __builtin_memset(job.weight_gradient[l], 0, sizeof(float) * layer.in * layer.out);
      __builtin_memset(job.bias_gradient[l], 0, sizeof(float) * layer.out);
    }
  }
  for (int64_t first = 0; first < job.rows; first += kMlpBlock) {
    const int rows = (int)(job.rows - first < kMlpBlock ? job.rows - first : kMlpBlock);
    const float* gradient = job.out_gradient + first * head.out;
    for (int l = depth - 1; l >= 0; --l) {
      const DenseLayer& layer = layers[l];
      const bool narrow_them = kNarrow && between(l, depth);
      const float* x = job.x + first * layer.in;
      const auto* hidden = l ? (const Hidden*)job.hidden[l - 1] + first * layer.in : nullptr;
      if (params && l == depth - 1) {
        x = widen(hidden, (int64_t)rows * layer.in, widened);
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < layer.out; ++j)
            job.bias_gradient[l][j] += gradient[(int64_t)i * layer.out + j];
        matmul<Float32, false, true>(layer.out, layer.in, rows, gradient, layer.out, x, 32,
                                     layer.in, head_gradient, layer.in);
      }
#if defined(__AVX512BF16__)
      if (narrow_them) {
        narrow_rows(gradient, (int64_t)rows * layer.out, narrow_gradient);
        if (params) {
          pair_rows(gradient, rows, layer.out, gradient_pairs);
          pair_rows(hidden, rows, layer.in, hidden_pairs);
          matmul<Bfloat16, false, true>(layer.in, layer.out, (rows + 1) / 2, hidden_pairs, layer.in,
                                        gradient_pairs, 32, layer.out, job.weight_gradient[l],
                                        layer.out);
        }
      }
#endif
      const float* incoming = gradient;
      if (l) {
        float* to = gradients[l % 2];
        if (narrow_them)
          matmul<Between, true, false>(rows, layer.in, layer.out / kPair, narrow_gradient,
                                       layer.out / kPair, packed[l],
                                       (ptrdiff_t)32 * layer.out / kPair, 32, to, layer.in);
        else
          matmul<Float32, true, false>(rows, layer.in, layer.out, gradient, layer.out, packed[l],
                                       (ptrdiff_t)32 * layer.out, 32, to, layer.in);
        (job.tanh ? squash_gradient : rectify_gradient)(
            to, hidden, rows, layer.in, params ? job.bias_gradient[l - 1] : nullptr);
        gradient = to;
      }
      if (params && l < depth - 1 && !narrow_them)
        matmul<Float32, false, true>(layer.in, layer.out, rows, l ? (const float*)hidden : x,
                                     layer.in, incoming, 32, layer.out, job.weight_gradient[l],
                                     layer.out);
    }
    if (job.x_gradient) {
      const int inputs = layers[0].in - job.first_input;
      matmul<Float32, true, false>(rows, inputs, layers[0].out, gradient, layers[0].out, packed[0],
                                   (ptrdiff_t)32 * layers[0].out, 32,
                                   job.x_gradient + first * inputs, inputs);
    }
  }
  if (params)
    for (int i = 0; i < head.in; ++i)
      for (int j = 0; j < head.out; ++j)
        job.weight_gradient[depth - 1][(int64_t)i * head.out + j] = head_gradient[j * head.in + i];
}

size_t scratch_bytes(const DenseLayer* layers, int depth) {
  size_t numbers = (size_t)6 * kMlpBlock * widest(layers, depth);
  for (int l = 0; l < depth; ++l)  // packed, and what it is packed from
    numbers += (size_t)2 * (wide(layers[l].in) + 1) * wide(layers[l].out);
  return numbers * sizeof(float) + 4096;
}

}  // namespace

Mlp mlp() { return {&forward, &backward, &scratch_bytes, (int)sizeof(Hidden)}; }

}  // namespace headrace::HEADRACE_ISA
