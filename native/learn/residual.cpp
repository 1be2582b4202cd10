// SPDX-License-Identifier: Apache-2.0
// A layer after the other over all boards; in a layer a few boards at a time, so that what lies
// between the steps of Winograd's products stays in the cache. A board's four quarters are the
// windows: 4 x 4 squares each, with those around them.
#include "residual.hpp"

#include "matmul.hpp"
#include "scratch.hpp"
#include "winograd.hpp"

namespace headrace::HEADRACE_ISA {

namespace {

constexpr int kGroup = 4;  // boards whose windows are multiplied together
constexpr int kWindows = 4 * kGroup;
constexpr int kSquares = 64;

int whole(int channels) { return (channels + 15) / 16 * 16; }

// Windows of some boards at the 36 points: [36][windows][channels], rows of whole vectors.
struct Points {
  float* at;
  int width;  // of a row
  // Points are not a power of two apart, so that they do not contend for a cache's places.
  ptrdiff_t apart() const { return (ptrdiff_t)kWindows * width + 16; }
  float* row(int point, int window) const { return at + point * apart() + window * width; }
};

Points points(int channels, Scratch& scratch) {
  Points found = {nullptr, whole(channels)};
  found.at = scratch.take<float>(kPoints * found.apart());
  return found;
}

// What one layer needs: weights at the 36 points [36][in][out].
void weights_at_points(const float* weight, int in, int out, float* to) {
  const ptrdiff_t size = (ptrdiff_t)in * out;
  for (ptrdiff_t i = 0; i < size; i += 16)
    transform<OfKernel>(
        [&](int row, int column) {
          return _mm512_loadu_ps(weight + (3 * row + column) * size + i);
        },
        [&](int row, int column, __m512 v) {
          _mm512_storeu_ps(to + (6 * row + column) * size + i, v);
        });
}

// The gradient of weights from that at the points.
void weights_from_points(const float* points, int in, int out, float* to) {
  const ptrdiff_t size = (ptrdiff_t)in * out;
  for (ptrdiff_t i = 0; i < size; i += 16)
    transform<OfKernelBack>(
        [&](int row, int column) {
          return _mm512_loadu_ps(points + (6 * row + column) * size + i);
        },
        [&](int row, int column, __m512 v) {
          _mm512_storeu_ps(to + (3 * row + column) * size + i, v);
        });
}

// Each of nine matrices [in, out] as [out, in].
void transpose_weights(const float* weight, int in, int out, float* to) {
  for (int tap = 0; tap < 9; ++tap)
    for (int i = 0; i < in; i += 16)
      for (int j = 0; j < out; j += 16)
        transpose16((const uint32_t*)weight + ((ptrdiff_t)tap * in + i) * out + j, out,
                    (uint32_t*)to + ((ptrdiff_t)tap * out + j) * in + i, in);
}

// Calls f with the quarter's first row and column as constants: which squares a window has beyond
// the board is then known to the compiler.
template <class F>
HEADRACE_STATIC void for_quarters(F f) {
  f.template operator()<0, 0>(0);
  f.template operator()<0, 4>(1);
  f.template operator()<4, 0>(2);
  f.template operator()<4, 4>(3);
}

// Boards [n, 64, channels] to points.
void windows(const float* x, int boards, int channels, const Points& to) {
  const ptrdiff_t apart = to.apart();
  for (int board = 0; board < boards; ++board, x += (ptrdiff_t)kSquares * channels)
    for (int c = 0; c < channels; c += 16) {
      const __mmask16 some = lanes(channels - c);
      for_quarters([&]<int top, int left>(int quarter) __attribute__((always_inline)) {
        float* out = to.row(0, 4 * board + quarter) + c;
        transform<OfWindow>(
            [&](int row, int column) __attribute__((always_inline)) {
              const int i = top - 1 + row, j = left - 1 + column;
              if (i < 0 || i > 7 || j < 0 || j > 7) return _mm512_setzero_ps();
              return _mm512_maskz_loadu_ps(some, x + (ptrdiff_t)(8 * i + j) * channels + c);
            },
            [&](int row, int column, __m512 v) __attribute__((always_inline)) {
              _mm512_storeu_ps(out + (6 * row + column) * apart, v);
            });
      });
    }
}

// Products at the points to y = rectified(them + bias (+ residual)), [n, 64, channels].
void outputs(const Points& from, const float* bias, const float* residual, int boards, int channels,
             float* y) {
  const ptrdiff_t apart = from.apart(), size = (ptrdiff_t)kSquares * channels;
  for (int board = 0; board < boards; ++board)
    for (int c = 0; c < channels; c += 16) {
      const __m512 shift = _mm512_loadu_ps(bias + c);
      for_quarters([&]<int top, int left>(int quarter) __attribute__((always_inline)) {
        const float* in = from.row(0, 4 * board + quarter) + c;
        transform<ToOutputs>(
            [&](int row, int column) __attribute__((always_inline)) {
              return _mm512_loadu_ps(in + (6 * row + column) * apart);
            },
            [&](int row, int column, __m512 v) __attribute__((always_inline)) {
              const ptrdiff_t at =
                  board * size + (ptrdiff_t)(8 * (top + row) + left + column) * channels + c;
              v = add(v, shift);
              if (residual) v = add(v, _mm512_loadu_ps(residual + at));
              _mm512_storeu_ps(y + at, _mm512_max_ps(_mm512_setzero_ps(), v));  // a NaN stays one
            });
      });
    }
}

// The gradient of sums [n, 64, channels] to points; it is also added to the bias's.
void gradient_windows(const float* gradient, int boards, int channels, const Points& to,
                      float* bias) {
  const ptrdiff_t apart = to.apart();
  for (int board = 0; board < boards; ++board, gradient += (ptrdiff_t)kSquares * channels)
    for (int c = 0; c < channels; c += 16) {
      __m512 sum = _mm512_loadu_ps(bias + c);
      for_quarters([&]<int top, int left>(int quarter) __attribute__((always_inline)) {
        float* out = to.row(0, 4 * board + quarter) + c;
        transform<ToOutputsBack>(
            [&](int row, int column) __attribute__((always_inline)) {
              const __m512 v = _mm512_loadu_ps(
                  gradient + (ptrdiff_t)(8 * (top + row) + left + column) * channels + c);
              sum = add(sum, v);
              return v;
            },
            [&](int row, int column, __m512 v) __attribute__((always_inline)) {
              _mm512_storeu_ps(out + (6 * row + column) * apart, v);
            });
      });
      _mm512_storeu_ps(bias + c, sum);
    }
}

// Gradients of windows to that of the layer before: where its output `was` positive, their sum,
// plus `residual`, which may be in the same place.
void gradient_of_inputs(const Points& from, const float* was, const float* residual, int boards,
                        int channels, float* to) {
  const ptrdiff_t apart = from.apart(), size = (ptrdiff_t)kSquares * channels;
  for (int board = 0; board < boards; ++board)
    for (int c = 0; c < channels; c += 16)
      for_quarters([&]<int top, int left>(int quarter) __attribute__((always_inline)) {
        const float* in = from.row(0, 4 * board + quarter) + c;
        transform<OfWindowBack>(
            [&](int row, int column) __attribute__((always_inline)) {
              return _mm512_loadu_ps(in + (6 * row + column) * apart);
            },
            [&](int row, int column, __m512 v) __attribute__((always_inline)) {
              const int i = top - 1 + row, j = left - 1 + column;
              if (i < 0 || i > 7 || j < 0 || j > 7) return;
              const ptrdiff_t at = board * size + (ptrdiff_t)(8 * i + j) * channels + c;
              // Windows overlap by two squares: an earlier quarter has begun the sum there.
              if ((top == 4 && row <= 1) || (left == 4 && column <= 1))
                v = add(v, _mm512_loadu_ps(to + at));
              else if (residual)
                v = add(v, _mm512_loadu_ps(residual + at));
              const __m512 then = _mm512_loadu_ps(was + at);
              _mm512_storeu_ps(to + at,
                               _mm512_maskz_mov_ps(
                                   _mm512_cmp_ps_mask(then, _mm512_setzero_ps(), _CMP_GT_OQ), v));
            });
      });
}

// One layer over all boards; `residual` may be null, and may be in the same place as `y`.
void layer_forward(const Tower& tower, int layer, int64_t boards, const float* x,
                   const float* residual, float* y, Scratch scratch) {
  const int in = layer ? tower.channels : tower.planes, out = tower.channels;
  auto* weights = scratch.take<float>((int64_t)kPoints * in * out);
  const Points before = points(in, scratch), after = points(out, scratch);
  weights_at_points(tower.weights[layer], in, out, weights);
  for (int64_t first = 0; first < boards; first += kGroup) {
    const int some = (int)(boards - first < kGroup ? boards - first : kGroup);
    const ptrdiff_t at = first * kSquares * out;
    windows(x + first * kSquares * in, some, in, before);
    for (int p = 0; p < kPoints; ++p)
      matmul<Float32, true, false>(4 * some, out, in, before.row(p, 0), before.width,
                                   weights + (ptrdiff_t)p * in * out, 32, out, after.row(p, 0),
                                   after.width);
    outputs(after, tower.biases[layer], residual ? residual + at : nullptr, some, out, y + at);
  }
}

// Back through one layer, of which `gradient` is that of its sums; of its inputs' only if there
// is a place for it.
void layer_backward(const TowerBackward& job, int layer, const float* gradient,
                    const float* residual, float* x_gradient, Scratch scratch) {
  const Tower& tower = job.tower;
  const int in = layer ? tower.channels : tower.planes, out = tower.channels;
  const ptrdiff_t size = (ptrdiff_t)in * out;
  const float* x = layer ? job.outputs[layer - 1] : job.x;
  float* bias = job.bias_gradient[layer];
  auto* sums = scratch.take<float>(kPoints * size);
  auto* weights = scratch.take<float>(kPoints * size);
  const Points of_x = points(in, scratch), of_y = points(out, scratch);
  if (x_gradient) {
    Scratch after = scratch;
    auto* transposed = after.take<float>(9 * size);
    transpose_weights(tower.weights[layer], in, out, transposed);
    weights_at_points(transposed, out, in, weights);
  }
  __builtin_memset(sums, 0, sizeof(float) * kPoints * size);
  __builtin_memset(bias, 0, sizeof(float) * out);
  for (int64_t first = 0; first < job.boards; first += kGroup) {
    const int some = (int)(job.boards - first < kGroup ? job.boards - first : kGroup);
    const ptrdiff_t at = first * kSquares * in;
    windows(x + at, some, in, of_x);
    gradient_windows(gradient + first * kSquares * out, some, out, of_y, bias);
    for (int p = 0; p < kPoints; ++p) {
      matmul<Float32, false, true>(in, out, 4 * some, of_x.row(p, 0), of_x.width, of_y.row(p, 0),
                                   32, of_y.width, sums + p * size, out);
      if (x_gradient)  // the windows themselves are not needed any more
        matmul<Float32, true, false>(4 * some, in, out, of_y.row(p, 0), of_y.width,
                                     weights + p * size, 32, in, of_x.row(p, 0), of_x.width);
    }
    if (x_gradient)
      gradient_of_inputs(of_x, x + at, residual ? residual + at : nullptr, some, in,
                         x_gradient + at);
  }
  weights_from_points(sums, in, out, job.weight_gradient[layer]);
}

void forward(const TowerForward& job) {
  const Scratch scratch{(char*)job.scratch};
  layer_forward(job.tower, 0, job.boards, job.x, nullptr, job.outputs[0], scratch);
  for (int layer = 1; layer < job.tower.layers(); layer += 2) {
    float* const* y = job.outputs + layer;
    layer_forward(job.tower, layer, job.boards, y[-1], nullptr, y[0], scratch);
    layer_forward(job.tower, layer + 1, job.boards, y[0], y[-1], y[1], scratch);
  }
}

void backward(const TowerBackward& job) {
  const int layers = job.tower.layers();
  const int64_t size = job.boards * kSquares * job.tower.channels;
  Scratch scratch{(char*)job.scratch};
  auto* gradient = scratch.take<float>(size);
  auto* inner = scratch.take<float>(size);
  for (int64_t i = 0; i < size; i += 16) {
    const __mmask16 positive = _mm512_cmp_ps_mask(_mm512_loadu_ps(job.outputs[layers - 1] + i),
                                                  _mm512_setzero_ps(), _CMP_GT_OQ);
    _mm512_storeu_ps(gradient + i, _mm512_maskz_loadu_ps(positive, job.out_gradient + i));
  }
  for (int layer = layers - 1; layer > 0; layer -= 2) {
    layer_backward(job, layer, gradient, nullptr, inner, scratch);
    layer_backward(job, layer - 1, inner, gradient, gradient, scratch);
  }
  layer_backward(job, 0, gradient, nullptr, nullptr, scratch);
}

size_t scratch_bytes(const Tower& tower, int64_t boards) {
  const int64_t widest = whole(tower.planes > tower.channels ? tower.planes : tower.channels);
  int64_t numbers = 2 * boards * kSquares * tower.channels;    // gradients
  numbers += (2 * kPoints + 9) * widest * tower.channels;      // weights
  numbers += 2 * kPoints * ((int64_t)kWindows * widest + 16);  // windows
  return (size_t)numbers * sizeof(float) + 4096;
}

}  // namespace

Towers towers() { return {&forward, &backward, &scratch_bytes}; }

}  // namespace headrace::HEADRACE_ISA
