// SPDX-License-Identifier: Apache-2.0
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>
#include <omp.h>

#include "../channels/ring.hpp"
#include "../channels/weights.hpp"
#include "checks.hpp"
#include "parts.hpp"

namespace headrace::bind {

namespace {

using channels::Ring;
using channels::Weights;
using channels::Word;
using Arrays = std::vector<Array>;

void* checked_memory(const Array& memory, int64_t bytes) {
  check_kind<uint8_t>(memory, "memory", {bytes});
  if (!contiguous(memory) || (uintptr_t)memory.data() % channels::kLine != 0) {
    throw nb::value_error("memory must be contiguous and begin at a multiple of 64");
  }
  return memory.data();
}

// Arrays [rows, ...], one a field; the fewest rows any of them has.
int64_t check_fields(const Ring& ring, const Arrays& arrays) {
  const auto& bytes = ring.field_bytes();
  if (arrays.size() != bytes.size()) {
    throw nb::value_error(("there are " + std::to_string(arrays.size()) + " arrays; the ring has " +
                           std::to_string(bytes.size()) + " fields")
                              .c_str());
  }
  int64_t rows = INT64_MAX;
  for (size_t f = 0; f < arrays.size(); ++f) {
    const Array& array = arrays[f];
    const int64_t count = array.ndim() ? (int64_t)array.shape(0) : 0;
    if (count == 0 || !contiguous(array) || (int64_t)array.nbytes() != count * bytes[f]) {
      throw nb::value_error(("field " + std::to_string(f) + " has shape " + shape_of(array) +
                             "; it must be contiguous rows of " + std::to_string(bytes[f]) +
                             " bytes")
                                .c_str());
    }
    rows = std::min(rows, count);
  }
  return rows;
}

template <class Pointer>
std::vector<Pointer> pointers(const Arrays& arrays) {
  std::vector<Pointer> out;
  for (const Array& array : arrays) out.push_back((Pointer)array.data());
  return out;
}

// The ring, and the memory that it lies in.
class BoundRing {
 public:
  BoundRing(Array memory, int64_t capacity, std::vector<int64_t> field_bytes)
      : memory_(memory),
        ring_(checked_memory(memory, bytes(capacity, field_bytes)), capacity, field_bytes) {}

  static int64_t bytes(int64_t capacity, const std::vector<int64_t>& field_bytes) {
    if (capacity < 1) throw nb::value_error("capacity must be at least 1");
    for (int64_t field : field_bytes) {
      if (field < 1) throw nb::value_error("every field must have at least one byte");
    }
    return Ring::memory_bytes(capacity, field_bytes);
  }

  Ring& ring() { return ring_; }

  void write(Word owner, const Arrays& arrays, int64_t count) {
    if (count > check_fields(ring_, arrays)) throw nb::value_error("there are fewer rows");
    ring_.write(owner, pointers<const char*>(arrays), count);
  }

  int64_t copy(const Arrays& arrays, int64_t first, int64_t last) {
    const int64_t rows = check_fields(ring_, arrays);
    if (first < 0 || last > ring_.capacity() || last - first > rows) {
      throw nb::value_error("the slots are not all in the ring, or the arrays have too few rows");
    }
    const auto to = pointers<char*>(arrays);
    nb::gil_scoped_release release;
    return ring_.copy(to, first, last);
  }

 private:
  Array memory_;
  Ring ring_;
};

class RingWriter {
 public:
  RingWriter(BoundRing& ring, int64_t owner, Arrays arrays)
      : ring_(&ring.ring()),
        owner_((Word)owner),
        arrays_(std::move(arrays)),
        rows_(check_fields(*ring_, arrays_)),
        from_(pointers<const char*>(arrays_)) {
    if (owner < 0 || owner >= 1 << Ring::kOwnerBits) throw nb::value_error("owner is out of range");
  }

  void write(int64_t count) {
    if (count < 0 || count > rows_) {
      throw nb::value_error(("there are " + std::to_string(rows_) + " rows to write").c_str());
    }
    ring_->write(owner_, from_, count);
  }

 private:
  Ring* ring_;
  Word owner_;
  Arrays arrays_;
  int64_t rows_;
  std::vector<const char*> from_;
};

class RingReader {
 public:
  RingReader(BoundRing& ring, Arrays arrays, int64_t batch_size, uint64_t seed, int threads)
      : ring_(&ring.ring()),
        arrays_(std::move(arrays)),
        rows_(check_fields(*ring_, arrays_)),
        to_(pointers<char*>(arrays_)),
        size_(batch_size),
        seed_(seed),
        threads_(threads) {
    if (threads < 1) throw nb::value_error("threads must be at least 1");
    if (batch_size < 1 || rows_ % batch_size) {
      throw nb::value_error("the arrays must have whole batches of rows");
    }
  }

  // Fills all rows of the arrays with batches `batch` and following; returns how many draws were
  // in vain.
  int64_t sample(uint32_t batch) {
    int64_t misses = 0;
    bool none = false;
    {
      nb::gil_scoped_release release;
#pragma omp parallel num_threads(threads_) reduction(+ : misses) \
    reduction(|| : none) if (threads_ > 1)
      {
        const int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
        const int64_t lanes = (size_ + 3) / 4;
        const int64_t first = lanes * part / parts, last = lanes * (part + 1) / parts;
        for (int64_t b = 0; b < rows_ / size_ && !none; ++b) {
          const int64_t missed =
              ring_->sample(to_, b * size_, size_, first, last, seed_, batch + (uint32_t)b);
          none = missed < 0;
          misses += missed < 0 ? 0 : missed;
        }
      }
    }
    if (none) throw nb::value_error("the ring holds nothing to draw from");
    return misses;
  }

 private:
  Ring* ring_;
  Arrays arrays_;
  int64_t rows_;
  std::vector<char*> to_;
  int64_t size_;
  uint64_t seed_;
  int threads_;
};

class BoundWeights {
 public:
  BoundWeights(Array memory, int64_t count)
      : memory_(memory), weights_(checked_memory(memory, bytes(count)), count) {}

  static int64_t bytes(int64_t count) {
    if (count < 1) throw nb::value_error("count must be at least 1");
    return Weights::memory_bytes(count);
  }

  Word version() const { return weights_.version(); }

  Word publish(const ConstArray& vector) {
    return weights_.publish((const float*)checked<float>(vector, "vector", {weights_.count()}));
  }

  Word read(const Array& into) {
    return weights_.read((float*)checked<float>(into, "into", {weights_.count()}));
  }

 private:
  Array memory_;
  Weights weights_;
};

// 64-bit words that processes tell each other numbers by.
class Words {
 public:
  explicit Words(Array memory) : memory_(memory), count_((int64_t)memory.nbytes() / 8) {
    words_ = (Word*)checked_memory(memory, count_ * 8);
  }

  int64_t get(int64_t at) const {
    return (int64_t)channels::load(checked_at(at), std::memory_order_acquire);
  }

  void set(int64_t at, int64_t value) {
    channels::store(checked_at(at), (Word)value, std::memory_order_release);
  }

  // For the one process that writes this word.
  void add(int64_t at, int64_t value) {
    Word* const word = checked_at(at);
    const Word now = channels::load(word, std::memory_order_relaxed);
    channels::store(word, now + (Word)value, std::memory_order_release);
  }

 private:
  Word* checked_at(int64_t at) const {
    if (at < 0 || at >= count_) throw nb::index_error("there is no such word");
    return words_ + at;
  }

  Array memory_;
  int64_t count_;
  Word* words_;
};

}  // namespace

void bind_channels(nb::module_& m) {
  nb::class_<BoundRing>(m, "Ring", "Rows in shared memory: several writers, one reader, no lock.")
      .def(nb::init<Array, int64_t, std::vector<int64_t>>(), nb::arg("memory"), nb::arg("capacity"),
           nb::arg("field_bytes"))
      .def_static("memory_bytes", &BoundRing::bytes, nb::arg("capacity"), nb::arg("field_bytes"))
      .def_prop_ro(
          "head", [](BoundRing& r) { return r.ring().head(); }, "Tickets taken so far.")
      .def_prop_ro(
          "fill", [](BoundRing& r) { return r.ring().fill(); }, "Slots that may hold rows.")
      .def(
          "repair", [](BoundRing& r, int64_t owner) { return r.ring().repair((Word)owner); },
          nb::arg("owner"), "Frees the slots that a writer that has ended left busy.")
      .def(
          "claim",
          [](BoundRing& r, int64_t ticket, int64_t owner) {
            return r.ring().claim((Word)ticket, (Word)owner);
          },
          nb::arg("ticket"), nb::arg("owner"), "For tests: a writer that stops within a row.")
      .def("write", &BoundRing::write, nb::arg("owner"), nb::arg("arrays"), nb::arg("count"),
           "Writes the first rows of the arrays.")
      .def("copy", &BoundRing::copy, nb::arg("arrays"), nb::arg("first"), nb::arg("last"),
           "Copies the whole rows among these slots; returns how many.");
  nb::class_<RingWriter>(m, "RingWriter", "Writes rows from arrays that were checked once.")
      .def(nb::init<BoundRing&, int64_t, Arrays>(), nb::arg("ring"), nb::arg("owner"),
           nb::arg("arrays"), nb::keep_alive<1, 2>())
      .def("write", &RingWriter::write, nb::arg("count"), "The first `count` rows.");
  nb::class_<RingReader>(m, "RingReader", "Draws rows into arrays that were checked once.")
      .def(nb::init<BoundRing&, Arrays, int64_t, uint64_t, int>(), nb::arg("ring"),
           nb::arg("arrays"), nb::arg("batch_size"), nb::arg("seed"), nb::arg("threads"),
           nb::keep_alive<1, 2>())
      .def("sample", &RingReader::sample, nb::arg("batch"),
           "Fills the arrays; returns how many draws met a row being written.");
  nb::class_<BoundWeights>(m, "Weights", "The newest parameters: one writer, many readers.")
      .def(nb::init<Array, int64_t>(), nb::arg("memory"), nb::arg("count"))
      .def_static("memory_bytes", &BoundWeights::bytes, nb::arg("count"))
      .def_prop_ro("version", &BoundWeights::version, "Of the newest; 0 where there is none.")
      .def("publish", &BoundWeights::publish, nb::arg("vector"), "Returns its version.")
      .def("read", &BoundWeights::read, nb::arg("into"), "The newest; returns its version.");
  nb::class_<Words>(m, "Words", "64-bit numbers in shared memory: set to release, got to acquire.")
      .def(nb::init<Array>(), nb::arg("memory"))
      .def("get", &Words::get, nb::arg("at"))
      .def("set", &Words::set, nb::arg("at"), nb::arg("value"))
      .def("add", &Words::add, nb::arg("at"), nb::arg("value"), "By the word's only writer.");
}

}  // namespace headrace::bind
