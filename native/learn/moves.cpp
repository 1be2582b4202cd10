// SPDX-License-Identifier: Apache-2.0
#include "moves.hpp"

#include <math.h>

#include "matmul.hpp"
#include "scratch.hpp"

namespace headrace::HEADRACE_ISA {

namespace {

constexpr int kMaskBytes = kMoves / 8;
constexpr float kImpossible = -1e9f;

// The legal moves of one board, with room for all.
struct Legal {
  int count;
  int32_t* move;
  float* logit;
  float* probability;
  float most, log_total;  // of logits; the latter of exp(logit - most)
};

struct Room {
  float* weights;  // [73][channels]
  Legal legal;
};

Room room(const Moves& job, Scratch& scratch) {
  Room found;
  found.weights = scratch.take<float>((int64_t)kMoveKinds * job.channels);
  found.legal = {
      0, scratch.take<int32_t>(kMoves), scratch.take<float>(kMoves), scratch.take<float>(kMoves), 0,
      0};
  for (int kind = 0; kind < kMoveKinds; ++kind)
    for (int c = 0; c < job.channels; ++c)
      found.weights[kind * job.channels + c] = job.weight[c * kMoveKinds + kind];
  return found;
}

int kind_of(int move) { return move % kMoveKinds; }
// As features have it.
int square_of(int move) {
  const int square = move / kMoveKinds, file = square / 8, rank = square % 8;
  return 8 * (7 - rank) + file;
}

void look(const Moves& job, int64_t board, const float* weights, Legal& legal) {
  const uint8_t* mask = job.mask + board * kMaskBytes;
  const float* features = job.features + board * 64 * job.channels;
  legal.count = 0;
  legal.most = kImpossible;
  for (int at = 0; at < kMaskBytes; at += 8) {
    uint64_t bits;
    __builtin_memcpy(&bits, mask + at, 8);
    for (; bits; bits &= bits - 1) {
      const int move = 8 * at + __builtin_ctzll(bits), kind = kind_of(move);
      const float *x = features + square_of(move) * job.channels,
                  *w = weights + kind * job.channels;
      __m512 sum = _mm512_setzero_ps();
      for (int c = 0; c < job.channels; c += 16)
        sum = _mm512_fmadd_ps(_mm512_loadu_ps(x + c), _mm512_loadu_ps(w + c), sum);
      const float logit = _mm512_reduce_add_ps(sum) + job.bias[kind];
      legal.move[legal.count] = move;
      legal.logit[legal.count++] = logit;
      if (!(logit <= legal.most)) legal.most = logit;  // a NaN is seen
    }
  }
  float total = 0;
  for (int i = 0; i < legal.count; ++i)
    total += legal.probability[i] = expf(legal.logit[i] - legal.most);
  legal.log_total = logf(total);
  for (int i = 0; i < legal.count; ++i) legal.probability[i] /= total;
}

float log_probability(const Legal& legal, int i) {
  return legal.logit[i] - legal.most - legal.log_total;
}

float entropy_of(const Legal& legal) {
  float entropy = 0;
  for (int i = 0; i < legal.count; ++i) entropy -= legal.probability[i] * log_probability(legal, i);
  return entropy;
}

// Where none is legal.
int any_move(float uniform) {
  const int move = (int)ceilf((1 - uniform) * kMoves) - 1;
  return move < 0 ? 0 : move;
}

int choice(const Legal& legal, float uniform) {
  float most = 0, sum = 0;
  for (int i = 0; i < legal.count; ++i) most += legal.probability[i];
  const float threshold = (1 - uniform) * most;
  for (int i = 0; i < legal.count; ++i) {
    sum += legal.probability[i];
    if (legal.probability[i] > 0 && sum >= threshold) return legal.move[i];
  }
  return legal.move[0];  // of NaNs
}

int likeliest(const Legal& legal) {
  int best = 0;
  for (int i = 1; i < legal.count; ++i)
    if (legal.logit[i] > legal.logit[best]) best = i;
  return legal.move[best];
}

void choose(const Moves& job, const float* uniform, int32_t* action) {
  Scratch scratch{(char*)job.scratch};
  auto [weights, legal] = room(job, scratch);
  for (int64_t board = 0; board < job.boards; ++board) {
    look(job, board, weights, legal);
    if (!legal.count)
      action[board] = uniform ? any_move(uniform[board]) : 0;
    else
      action[board] = uniform ? choice(legal, uniform[board]) : likeliest(legal);
  }
}

void judge(const Moves& job, const int32_t* action, float* log_prob, float* entropy) {
  Scratch scratch{(char*)job.scratch};
  auto [weights, legal] = room(job, scratch);
  for (int64_t board = 0; board < job.boards; ++board) {
    look(job, board, weights, legal);
    if (!legal.count) {
      entropy[board] = logf(kMoves);
      log_prob[board] = -logf(kMoves);
      continue;
    }
    entropy[board] = entropy_of(legal);
    log_prob[board] = kImpossible - legal.most - legal.log_total;
    for (int i = 0; i < legal.count; ++i)
      if (legal.move[i] == action[board]) log_prob[board] = log_probability(legal, i);
  }
}

void gradients(const Moves& job, const int32_t* action, const MoveGradients& to) {
  const int channels = job.channels;
  Scratch scratch{(char*)job.scratch};
  auto [weights, legal] = room(job, scratch);
  auto* of_weights = scratch.take<float>((int64_t)kMoveKinds * channels);
  __builtin_memset(of_weights, 0, sizeof(float) * kMoveKinds * channels);
  __builtin_memset(to.bias, 0, sizeof(float) * kMoveKinds);
  __builtin_memset(to.features, 0, sizeof(float) * job.boards * 64 * channels);
  for (int64_t board = 0; board < job.boards; ++board) {
    look(job, board, weights, legal);
    const float entropy = entropy_of(legal);
    for (int i = 0; i < legal.count; ++i) {
      const int move = legal.move[i], kind = kind_of(move);
      const float probability = legal.probability[i];
      const float chosen = move == action[board] ? 1.f : 0.f;
      const float slope =
          to.of_log_prob[board] * (chosen - probability) -
          to.of_entropy[board] * probability * (log_probability(legal, i) + entropy);
      to.bias[kind] += slope;
      const ptrdiff_t at = (board * 64 + square_of(move)) * channels;
      const __m512 wide = _mm512_set1_ps(slope);
      for (int c = 0; c < channels; c += 16) {
        float *x = to.features + at + c, *w = of_weights + kind * channels + c;
        _mm512_storeu_ps(x, _mm512_fmadd_ps(wide, _mm512_loadu_ps(weights + kind * channels + c),
                                            _mm512_loadu_ps(x)));
        _mm512_storeu_ps(
            w, _mm512_fmadd_ps(wide, _mm512_loadu_ps(job.features + at + c), _mm512_loadu_ps(w)));
      }
    }
  }
  for (int kind = 0; kind < kMoveKinds; ++kind)
    for (int c = 0; c < channels; ++c)
      to.weight[c * kMoveKinds + kind] = of_weights[kind * channels + c];
}

size_t scratch_bytes(int channels) {
  return sizeof(float) * (2 * (size_t)kMoveKinds * channels + 3 * kMoves) + 4096;
}

}  // namespace

MovePolicy move_policy() { return {&choose, &judge, &gradients, &scratch_bytes}; }

}  // namespace headrace::HEADRACE_ISA
