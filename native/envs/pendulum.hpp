// SPDX-License-Identifier: Apache-2.0
// Pendulum-v1: swing up and hold a pendulum with a limited torque, by Gymnasium's rules.
#pragma once

#include "../core/env.hpp"
#include "../core/kernel_lanes.hpp"

namespace headrace::HEADRACE_ISA {

template <class L>
struct Pendulum {
  using f32 = typename L::f32;
  using i32 = typename L::i32;

  static constexpr float kPi = 3.14159265358979f;
  static constexpr float kMaxSpeed = 8.0f;
  static constexpr float kMaxTorque = 2.0f;
  static constexpr float kDt = 0.05f;
  static constexpr float kGravity = 10.0f;
  static constexpr float kMass = 1.0f;
  static constexpr float kLength = 1.0f;

  static constexpr Description describe = {
      .name = "Pendulum-v1",
      .observation_size = 3,
      .observation_low = {-1.0f, -1.0f, -kMaxSpeed},
      .observation_high = {1.0f, 1.0f, kMaxSpeed},
      .action_kind = ActionKind::box,
      .action_size = 1,
      .action_low = -kMaxTorque,
      .action_high = kMaxTorque,
      .max_episode_steps = 200,
  };

  struct State {
    f32 theta, theta_dot;
  };

  HEADRACE_INLINE State reset(ResetDraws<L>& draws) const {
    State state;
    state.theta = draws.uniform(-kPi, kPi);
    state.theta_dot = draws.uniform(-1.0f, 1.0f);
    return state;
  }

  HEADRACE_INLINE Outcome<L> step(State& s, f32 action) const {
    const f32 torque = clip(action, -kMaxTorque, kMaxTorque);
    const f32 turns = floor((s.theta + kPi) * (0.5f / kPi));
    const f32 angle = s.theta - (2.0f * kPi) * turns;  // in [-pi, pi)
    const f32 cost =
        angle * angle + 0.1f * (s.theta_dot * s.theta_dot) + 0.001f * (torque * torque);

    const f32 theta_acc = 3.0f * kGravity / (2.0f * kLength) * sincos<L>(s.theta).sin +
                          3.0f / (kMass * kLength * kLength) * torque;
    s.theta_dot = clip(s.theta_dot + kDt * theta_acc, -kMaxSpeed, kMaxSpeed);
    s.theta += kDt * s.theta_dot;
    return {-cost, i32{}};
  }

  HEADRACE_INLINE void observe(const State& s, f32 (&out)[3]) const {
    const auto [sin, cos] = sincos<L>(s.theta);
    out[0] = cos;
    out[1] = sin;
    out[2] = s.theta_dot;
  }
};

}  // namespace headrace::HEADRACE_ISA
