// SPDX-License-Identifier: Apache-2.0
#include "../core/limits.hpp"

#include <nanobind/stl/string.h>
#include <omp.h>

#include <chrono>

#include "checks.hpp"
#include "parts.hpp"

namespace headrace::bind {

namespace {

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// How often per second `pass` runs, over `seconds`.
template <class Pass>
double passes_per_second(double seconds, const Pass& pass) {
  nb::gil_scoped_release release;
  pass(0);
  const double start = now();
  int passes = 0;
  do {
    pass(++passes);
    asm volatile("" ::: "memory");
  } while (now() - start < seconds);
  return passes / (now() - start);
}

void* bytes_of(const Array& buffer) {
  if (contiguous(buffer) && buffer.nbytes() >= 64) return buffer.data();
  throw nb::value_error("buffer must be contiguous, of at least 64 bytes");
}

double store_bandwidth(Array buffer, double seconds, int threads, const std::string& isa) {
  const Limits limits = find_isa(isa).limits();
  void* data = bytes_of(buffer);
  const auto bytes = (int64_t)buffer.nbytes();
  return (double)bytes *
         passes_per_second(seconds, [&](int pass) { limits.store(data, bytes, pass, threads); });
}

double update_bandwidth(Array buffer, double seconds, const std::string& isa) {
  const Limits limits = find_isa(isa).limits();
  void* data = bytes_of(buffer);
  const auto bytes = (int64_t)buffer.nbytes();
  return 2.0 * (double)bytes * passes_per_second(seconds, [&](int) { limits.update(data, bytes); });
}

double arithmetic_peak(double seconds, int threads, const std::string& isa) {
  const Limits limits = find_isa(isa).limits();
  constexpr int64_t rounds = 1 << 14;
  volatile float sink;
  const double ops = 2.0 * 16 * kArithmeticChains * (double)rounds * threads;
  return ops *
         passes_per_second(seconds, [&](int) { sink = limits.multiply_add(rounds, threads); });
}

}  // namespace

void bind_limits(nb::module_& m) {
  m.def("store_bandwidth", &store_bandwidth, nb::arg("buffer"), nb::arg("seconds"),
        nb::arg("threads"), nb::arg("isa"), "Bytes/s stored into the buffer again and again.");
  m.def("update_bandwidth", &update_bandwidth, nb::arg("buffer"), nb::arg("seconds"),
        nb::arg("isa"), "Bytes/s read and written back on one thread.");
  m.def("arithmetic_peak", &arithmetic_peak, nb::arg("seconds"), nb::arg("threads"), nb::arg("isa"),
        "Uncontracted float32 operations/s.");
  m.def("max_threads", [] { return omp_get_num_procs(); }, "Processors OpenMP may use.");
}

}  // namespace headrace::bind
