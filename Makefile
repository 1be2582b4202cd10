# Everything starts from here, on a machine with Python >= 3.11, a C++20 compiler and make.
#   make demo    install into .venv, learn CartPole until it is solved, show the ladder for it
#   make test    install what the tests need, run all of them
#   make lint    formatting, lint, types, import rules
#   make bench   every benchmark (minutes; installs the peers they compare with)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip
NATIVE := $(shell find native -name '*.hpp' -o -name '*.cpp') CMakeLists.txt pyproject.toml
CXX_FILES := $(shell find native -name '*.hpp' -o -name '*.cpp')
SANITIZED := build/native-sanitized
PLAIN := build/native-plain
THREADED := build/native-threaded

.PHONY: demo test test-python test-native test-slow lint format bench soak clean check-machine check-browser
.DELETE_ON_ERROR:

demo: $(VENV)/installed
	$(BIN)/headrace train CartPole-v1
	$(BIN)/headrace ladder CartPole-v1

test: test-native test-python

# Tests compile many programs and run little of each: XLA need not optimise them.
test-python: $(VENV)/installed-dev check-browser
	XLA_FLAGS=--xla_backend_optimization_level=0 $(BIN)/python -m pytest -m "not slow"

test-slow: $(VENV)/installed-dev
	$(BIN)/python -m pytest -m slow

# The native parts without Python: plain, under AddressSanitizer and UBSan, and what processes do at
# the same time under ThreadSanitizer.
test-native: $(VENV)/installed
	$(call native_tests,$(PLAIN),-DHEADRACE_SANITIZE=OFF)
	$(call native_tests,$(SANITIZED),-DHEADRACE_SANITIZE=ON)
	$(call native_tests,$(THREADED),-DHEADRACE_TSAN=ON,--target headrace_channel_tests,-R channels)

define native_tests
	$(BIN)/cmake -S . -B $(1) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DHEADRACE_TESTS=ON $(2) > $(1).log 2>&1 || (cat $(1).log; exit 1)
	$(BIN)/cmake --build $(1) $(3) >> $(1).log 2>&1 || (tail -50 $(1).log; exit 1)
	$(BIN)/ctest --test-dir $(1) --output-on-failure $(4)
endef

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

bench: $(VENV)/installed-dev
	$(BIN)/python benchmarks/run_all.py

# Half an hour at full speed: memory, rates and handles stay as they are.
soak: $(VENV)/installed-dev
	$(BIN)/python benchmarks/async/soak.py --minutes $(or $(MINUTES),30)

clean:
	rm -rf build $(VENV) .peers

# ---- installation: locked versions, built without isolation so that the lock holds there too ----

$(VENV)/installed: constraints.txt $(NATIVE) | check-machine
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p build
	@echo "installing headrace into $(VENV) (a minute or two the first time)"
	@$(PIP) install -q --upgrade pip
	@$(PIP) install -q -c constraints.txt scikit-build-core nanobind cmake ninja jaxlib
	@PATH="$(abspath $(BIN)):$$PATH" $(PIP) install -q -c constraints.txt --no-build-isolation -e .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@echo "installing what the tests need"
	@$(PIP) install -q -c constraints.txt setuptools wheel  # python-chess comes as source
	@PATH="$(abspath $(BIN)):$$PATH" $(PIP) install -q -c constraints.txt --no-build-isolation -e ".[dev,mpi,torch]"
	@touch $@

# The tests of `headrace watch` look at its page in Chromium; where there is none, they are skipped.
check-browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing chromium, for the tests of headrace watch"; \
	  (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium) \
	    > build/chromium.log 2>&1 || { tail -3 build/chromium.log; \
	    echo "chromium cannot be installed: the tests that need it are skipped"; }; \
	else echo "no chromium: the tests that need it are skipped (Debian, Ubuntu: apt-get install chromium)"; fi

check-machine:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "headrace needs Python >= 3.11: install it, or name it: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "headrace needs Python's venv module: install it (Debian, Ubuntu: apt-get install python3-venv)"; exit 1; }
	@command -v $${CXX:-c++} >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || \
	  { echo "headrace needs a C++20 compiler: install one (Debian, Ubuntu: apt-get install g++)"; exit 1; }
