// SPDX-License-Identifier: Apache-2.0
// CartPole-v1: the pole-balancing task of Barto, Sutton and Anderson, by Gymnasium's rules.
#pragma once

#include "../core/env.hpp"
#include "../core/kernel_lanes.hpp"

namespace headrace::HEADRACE_ISA {

template <class L>
struct CartPole {
  using f32 = typename L::f32;
  using i32 = typename L::i32;

  static constexpr float kGravity = 9.8f;
  static constexpr float kMassPole = 0.1f;
  static constexpr float kTotalMass = 1.1f;
  static constexpr float kHalfLength = 0.5f;
  static constexpr float kForce = 10.0f;
  static constexpr float kTau = 0.02f;
  static constexpr float kXLimit = 2.4f;
  static constexpr float kThetaLimit = 0.20943951023931953f;  // 12 degrees
  static constexpr float kInf = __builtin_inff();

  static constexpr Description describe = {
      .name = "CartPole-v1",
      .observation_size = 4,
      .observation_low = {-2 * kXLimit, -kInf, -2 * kThetaLimit, -kInf},
      .observation_high = {2 * kXLimit, kInf, 2 * kThetaLimit, kInf},
      .action_size = 2,
      .max_episode_steps = 500,
  };

  struct State {
    f32 x, x_dot, theta, theta_dot;
  };

  HEADRACE_INLINE State reset(ResetDraws<L>& draws) const {
    State state;
    state.x = draws.uniform(-0.05f, 0.05f);
    state.x_dot = draws.uniform(-0.05f, 0.05f);
    state.theta = draws.uniform(-0.05f, 0.05f);
    state.theta_dot = draws.uniform(-0.05f, 0.05f);
    return state;
  }

  HEADRACE_INLINE Outcome<L> step(State& s, i32 action) const {
    constexpr float pole_moment = kMassPole * kHalfLength;
    const f32 force = action == 1 ? f32{} + kForce : f32{} - kForce;
    const auto [sin, cos] = sincos<L>(s.theta);
    const f32 push = (force + pole_moment * (s.theta_dot * s.theta_dot) * sin) * (1 / kTotalMass);
    const f32 theta_acc = (kGravity * sin - cos * push) /
                          (kHalfLength * (4.0f / 3.0f - kMassPole / kTotalMass * (cos * cos)));
    const f32 x_acc = push - pole_moment / kTotalMass * (theta_acc * cos);

    s.x += kTau * s.x_dot;
    s.x_dot += kTau * x_acc;
    s.theta += kTau * s.theta_dot;
    s.theta_dot += kTau * theta_acc;

    const i32 fallen =
        (s.x < -kXLimit) | (s.x > kXLimit) | (s.theta < -kThetaLimit) | (s.theta > kThetaLimit);
    return {f32{} + 1.0f, fallen};
  }

  HEADRACE_INLINE void observe(const State& s, f32 (&out)[4]) const {
    out[0] = s.x;
    out[1] = s.x_dot;
    out[2] = s.theta;
    out[3] = s.theta_dot;
  }
};

}  // namespace headrace::HEADRACE_ISA
