// SPDX-License-Identifier: Apache-2.0
// The border: what comes from Python is checked here, completely, and nowhere behind.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "../core/narrow.hpp"
#include "../core/rollout.hpp"

namespace headrace::bind {

namespace nb = nanobind;

using Array = nb::ndarray<nb::device::cpu>;
using ConstArray = nb::ndarray<nb::ro, nb::device::cpu>;

template <class A>
std::string shape_of(const A& array) {
  std::string out = "(";
  for (size_t d = 0; d < array.ndim(); ++d) {
    if (d) out += ", ";
    out += std::to_string(array.shape(d));
  }
  return out + (array.ndim() == 1 ? ",)" : ")");
}

inline std::string shape_of(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d) out += ", ";
    out += std::to_string(shape[d]);
  }
  return out + (shape.size() == 1 ? ",)" : ")");
}

inline std::string name_of(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto code = (Code)dtype.code;
  const char* kind = code == Code::Int     ? "int"
                     : code == Code::UInt  ? "uint"
                     : code == Code::Float ? "float"
                     : code == Code::Bool  ? "bool"
                                           : "other";
  return code == Code::Bool ? "bool" : kind + std::to_string(dtype.bits);
}

// Elements lie one after another, in each entry of the first `outer` dimensions.
template <class A>
bool contiguous(const A& array, size_t outer = 0) {
  int64_t expected = 1;
  for (size_t d = array.ndim(); d-- > outer;) {
    if (array.shape(d) != 1 && array.stride(d) != expected) return false;
    expected *= (int64_t)array.shape(d);
  }
  return true;
}

template <class A>
bool has_shape(const A& array, const std::vector<int64_t>& shape) {
  if (array.ndim() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((int64_t)array.shape(d) != shape[d]) return false;
  }
  return true;
}

inline std::vector<int64_t> observation_shape(const Description& describe) {
  std::vector<int64_t> shape;
  for (int length : describe.observation_shape) {
    if (length) shape.push_back(length);
  }
  if (shape.empty()) shape.push_back(describe.observation_size);
  return shape;
}

// An error that names the array, unless it has this very dtype and shape.
template <class T, class A>
void check_kind(const A& array, const char* name, const std::vector<int64_t>& shape) {
  const bool boolean = sizeof(T) == 1 && array.dtype() == nb::dtype<bool>();
  if (array.dtype() != nb::dtype<T>() && !boolean) {
    throw nb::type_error((std::string(name) + " has dtype " + name_of(array.dtype()) +
                          "; it must be " + name_of(nb::dtype<T>()))
                             .c_str());
  }
  if (!has_shape(array, shape)) {
    throw nb::value_error(
        (std::string(name) + " has shape " + shape_of(array) + "; it must be " + shape_of(shape))
            .c_str());
  }
}

// The data of an array that must have this very dtype and shape, or an error that names it.
template <class T, class A>
auto* checked(const A& array, const char* name, const std::vector<int64_t>& shape) {
  check_kind<T>(array, name, shape);
  if (!contiguous(array)) {
    throw nb::value_error(
        (std::string(name) + " is not contiguous; pass numpy.ascontiguousarray(...)").c_str());
  }
  return array.data();
}

// Likewise for [steps, n, ...] whose rows may be parts of longer ones, of `pitch` environments.
template <class T, class A>
auto* checked_rows(const A& array, const char* name, const std::vector<int64_t>& shape,
                   int64_t pitch) {
  check_kind<T>(array, name, shape);
  int64_t wanted = pitch;
  for (size_t d = 2; d < shape.size(); ++d) wanted *= shape[d];
  if (!contiguous(array, 1) || (shape[0] > 1 && (int64_t)array.stride(0) != wanted)) {
    throw nb::value_error((std::string(name) + " is not contiguous, nor columns of an array of " +
                           std::to_string(pitch) +
                           " environments; pass numpy.ascontiguousarray(...)")
                              .c_str());
  }
  return array.data();
}

// The data of an array of observations as the environment has them; `leading` are the axes in
// front. With a `pitch` they are steps and environments, as for `checked_rows`.
template <class A>
void* checked_observation(const A& array, const char* name, const Description& describe,
                          std::vector<int64_t> leading, int64_t pitch = 0) {
  for (int64_t length : observation_shape(describe)) leading.push_back(length);
  if (describe.observation_kind == ObservationKind::bytes) {
    return pitch ? checked_rows<uint8_t>(array, name, leading, pitch)
                 : checked<uint8_t>(array, name, leading);
  }
  return pitch ? checked_rows<float>(array, name, leading, pitch)
               : checked<float>(array, name, leading);
}

// Actions as the kernels want them: checked, and narrowed into `staging` where their dtype differs.
class ActionReader {
 public:
  ActionReader(const Description& describe, const Narrow& narrow, int64_t steps, int64_t n)
      : describe_(&describe),
        narrow_(narrow),
        steps_(steps),
        n_(n),
        count_(steps * n * describe.action_components()) {
    staging_.resize(count_ * describe.action_bytes());
  }

  // The first `steps` rows of the staging room are enough for them.
  const void* read(const ConstArray& actions, int64_t steps) {
    steps_ = steps;
    count_ = steps * n_ * describe_->action_components();
    check_shape(actions);
    return describe_->action_kind == ActionKind::discrete ? read_choices(actions)
                                                          : read_components(actions);
  }

  // The error for an action, read before, that is illegal where it was to be taken.
  nb::builtin_exception illegal(const void* actions, int64_t at) const {
    const int action = describe_->action_bytes() == 1 ? ((const uint8_t*)actions)[at]
                                                      : ((const uint16_t*)actions)[at];
    const std::string environment = std::to_string(at % n_);
    return nb::value_error((where(at) + std::to_string(action) + ", which is illegal now in " +
                            "environment " + environment + " of " + describe_->name)
                               .c_str());
  }

 private:
  void check_shape(const ConstArray& actions) const {
    int64_t shape[3];
    size_t ndim = 0;
    if (actions.ndim() > 0 && steps_ > 1) shape[ndim++] = steps_;
    shape[ndim++] = n_;
    if (describe_->action_kind == ActionKind::box) shape[ndim++] = describe_->action_size;
    bool right = actions.ndim() == ndim;
    for (size_t d = 0; right && d < ndim; ++d) right = (int64_t)actions.shape(d) == shape[d];
    if (right && contiguous(actions)) return;
    if (right) {
      throw nb::value_error("actions are not contiguous; pass numpy.ascontiguousarray(actions)");
    }
    throw nb::value_error(("actions have shape " + shape_of(actions) + "; " + describe_->name +
                           " here takes " + shape_of(std::vector<int64_t>(shape, shape + ndim)))
                              .c_str());
  }

  const void* read_choices(const ConstArray& actions) {
    if (describe_->action_bytes() == 1) return narrow_to(actions, narrow_.to_bytes);
    return narrow_to(actions, narrow_.to_halves);
  }

  template <class To>
  const void* narrow_to(const ConstArray& actions, const NarrowTo<To>& to) {
    const auto dtype = actions.dtype();
    const void* data = actions.data();
    if (dtype == nb::dtype<int64_t>()) return narrow((const int64_t*)data, to.from_int64);
    if (dtype == nb::dtype<uint8_t>()) return narrow((const uint8_t*)data, to.from_uint8);
    if (dtype == nb::dtype<uint16_t>()) return narrow((const uint16_t*)data, to.from_uint16);
    if (dtype == nb::dtype<int32_t>()) return narrow((const int32_t*)data, to.from_int32);
    if (dtype == nb::dtype<uint32_t>()) return narrow((const uint32_t*)data, to.from_uint32);
    if (dtype == nb::dtype<int16_t>()) return narrow((const int16_t*)data, to.from_int16);
    if (dtype == nb::dtype<int8_t>()) return narrow((const int8_t*)data, to.from_int8);
    throw wrong_dtype(dtype, "integers");
  }

  template <class From, class To>
  const void* narrow(const From* from, NarrowFrom<From, To> narrow_from) {
    const int choices = describe_->action_size;
    if (narrow_from(from, count_, choices, (To*)staging_.data())) return staging_.data();
    int64_t at = 0;
    while ((uint64_t)from[at] < (uint64_t)choices) ++at;
    throw nb::value_error((where(at) + std::to_string((int64_t)from[at]) + "; " + describe_->name +
                           " takes 0 to " + std::to_string(choices - 1))
                              .c_str());
  }

  const void* read_components(const ConstArray& actions) {
    const auto dtype = actions.dtype();
    if (dtype == nb::dtype<float>()) return check_finite((const float*)actions.data());
    if (dtype != nb::dtype<double>()) throw wrong_dtype(dtype, "float32");
    auto* to = (float*)staging_.data();
    const auto* from = (const double*)actions.data();
    for (int64_t i = 0; i < count_; ++i) to[i] = (float)from[i];
    return check_finite(to);
  }

  const float* check_finite(const float* values) const {
    bool bad = false;
    for (int64_t i = 0; i < count_; ++i) bad |= !(values[i] - values[i] == 0.0f);
    if (!bad) return values;
    int64_t at = 0;
    while (std::isfinite(values[at])) ++at;
    throw nb::value_error(
        (where(at) + std::to_string(values[at]) + "; actions must be finite").c_str());
  }

  // "actions[2, 5] is ", for flat position `at`
  std::string where(int64_t at) const {
    const int64_t components = describe_->action_components();
    const int64_t row = at / components;
    std::string out = "actions[";
    if (steps_ > 1) out += std::to_string(row / n_) + ", ";
    out += std::to_string(row % n_);
    if (describe_->action_kind == ActionKind::box) out += ", " + std::to_string(at % components);
    return out + "] is ";
  }

  nb::builtin_exception wrong_dtype(nb::dlpack::dtype dtype, const char* wanted) const {
    return nb::type_error(
        ("actions have dtype " + name_of(dtype) + "; " + describe_->name + " takes " + wanted)
            .c_str());
  }

  const Description* describe_;
  Narrow narrow_;
  int64_t steps_, n_, count_;
  std::vector<uint8_t> staging_;
};

}  // namespace headrace::bind
