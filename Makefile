# One command per task; every target makes the environment it needs and can be run again.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The tests start about three hundred interpreters; each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-npu demo-ranks ranks npu null native test test-long oracle browser faults faults-quick fuzz fuzz-quick \
        sanitize bench lint types docs clean wheels \
        sanitize-npu-sim sanitize-kernels libraries libraries-quick

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(VENV)/base: pyproject.toml
	@echo "-- creating $(VENV) and installing mindtorch-v2 with its test tools"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[test]'
	@touch $@

$(VENV)/oracle: $(VENV)/base requirements-oracle.txt
	@echo "-- installing PyTorch, the oracle to compare with, and oneDNN"
	@$(PIP) -r requirements-oracle.txt $$($(BIN)/python tools/extra.py fast)
	@touch $@

$(VENV)/mpi: $(VENV)/base
	@echo "-- installing MPI and Dask"
	@$(PIP) $$($(BIN)/python tools/extra.py distributed dask)
	@touch $@

$(VENV)/browser: $(VENV)/base
	@echo "-- installing the Perfetto UI"
	@$(PIP) $$($(BIN)/python tools/extra.py browser)
	@touch $@

LIBRARIES = $(VENV)-libraries
$(LIBRARIES)/base: pyproject.toml requirements-libraries.txt requirements-libraries-base.txt
	@echo "-- creating $(LIBRARIES) and installing libraries that run on PyTorch, without PyTorch"
	@$(PYTHON) -m venv $(LIBRARIES)
	@$(LIBRARIES)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[arrow]' -r requirements-libraries-base.txt
	@$(LIBRARIES)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-libraries.txt
	@touch $@

$(VENV)/tools: $(VENV)/base
	@echo "-- installing linters"
	@$(PIP) $$($(BIN)/python tools/extra.py lint)
	@touch $@

demo: $(VENV)/base ## profile a small training program; prints a summary and a finding, writes a recording and a report
	@mkdir -p demo-out
	@$(BIN)/mtprof run --force -o demo-out/demo.mtp --chrome=demo-out/demo.json.gz --steps 100-119 examples/demo.py

demo-npu: $(VENV)/base ## the same on an NPU; on the simulator, unless MINDTORCH_NPU chooses a device
	@MINDTORCH_NPU=$${MINDTORCH_NPU:-sim} $(BIN)/python examples/demo_npu.py

demo-ranks: $(VENV)/mpi ## train in four processes, one of them slow; prints which waits for which, writes a report
	@mkdir -p demo-out
	@$(BIN)/mtprof run --force --ranks 4 -o demo-out/ranks examples/demo_ranks.py

ranks: $(VENV)/mpi ## torch.distributed in real processes on MPI, compared with PyTorch's gloo; ranks read on Dask
	@echo "-- running programs of several ranks"
	@bash -c 'time timeout 1200 $(BIN)/python -m pytest -rs --durations=5 tests/distributed tests/mtprof/ranks'

native: $(VENV)/base ## build the C parts into src/, to use them without installing again
	@$(PIP) 'setuptools>=69' 'numpy>=2.0'
	@$(BIN)/python setup.py --quiet build_ext --inplace

define RUN_TESTS
@bash -c 'TIMEFORMAT="-- %R s; processor time %U s, and %S s in the system"; \
  time $(BIN)/python -m pytest -rs --durations=5 --ignore=tests/distributed --ignore=tests/mindtorch_v2/browser'
@echo "-- more tests: make oracle (PyTorch), ranks (MPI), browser (Chromium), faults, fuzz, sanitize, bench; .ci/run is what CI runs"
endef

test: $(VENV)/base ## run the tests, about two minutes of processor time (tests that need PyTorch are skipped without it)
	@echo "-- running the tests; make test-long also runs the slow ones, and tries more examples of each property"
	$(RUN_TESTS)

test-long: export MINDTORCH_TEST_LONG = 1
test-long: $(VENV)/base ## the same with slow tests and more examples: what CI runs
	@echo "-- running all tests at full length"
	$(RUN_TESTS)

oracle: $(VENV)/oracle ## compare with real PyTorch 2.13
	@echo "-- comparing with PyTorch"
	@$(BIN)/python -m pytest tests/mindtorch_v2/oracle tests/mindtorch_v2/test_onednn.py tests/mtprof/cli/test_pytorch.py \
	  tests/npu/test_operators.py tests/test_docs.py

npu: $(VENV)/oracle ## test the simulator, the NPU on it, and the NPU's ops with the oracle's tests
	@echo "-- running the NPU's tests on the simulator"
	@MINDTORCH_TEST_LONG=1 $(BIN)/python -m pytest tests/npu tests/npu_device
	@MINDTORCH_NPU_LAUNCHER=python $(BIN)/python -m pytest tests/npu_device
	@MINDTORCH_NPU=sim MINDTORCH_NPU_SIM_MODEL=zero MINDTORCH_TEST_DEVICE=npu $(BIN)/python -m pytest tests/mindtorch_v2/oracle

null: $(VENV)/oracle ## run the oracle's tests on a device whose memory the host cannot see
	@MINDTORCH_TEST_DEVICE=null $(BIN)/python -m pytest tests/mindtorch_v2/oracle

browser: $(VENV)/browser ## open traces in the Perfetto UI, in Chromium (skipped without it)
	@echo "-- opening traces in a browser"
	@$(BIN)/python -m pytest tests/mindtorch_v2/browser

faults: $(VENV)/base ## test what must hold when something fails: cases in child processes, both recorders (FAULTS='-k word')
	@$(BIN)/python -m tests.faults $(FAULTS)
	@MINDTORCH_INTERRUPTS_STEP=1 $(BIN)/python -m pytest tests/mindtorch_v2/test_recorder_faults.py -k interrupted

faults-quick: $(VENV)/base ## the fault cases that take seconds and do not depend on chance: for CI
	@$(BIN)/python -m tests.faults --quick $(FAULTS)

fuzz: $(VENV)/base ## change files at random and read them, a minute a target (FUZZ='--seconds 7200 -t checkpoint')
	@$(BIN)/python -m tests.fuzz $(FUZZ)

fuzz-quick: $(VENV)/base ## fuzz with the same inputs each time, about 20 seconds a target: for CI
	@$(BIN)/python -m tests.fuzz --quick $(FUZZ)

sanitize: $(VENV)/base ## test the C parts under address and undefined-behaviour sanitizers and a debugging allocator
	@$(PIP) 'setuptools>=69' 'numpy>=2.0'
	@$(BIN)/python tests/sanitize.py $(SANITIZE)

wheels: ## build wheels for every installed Python from 3.10 to 3.13, into dist/
	@PYTHON=$(PYTHON) bash tools/wheels.sh

bench: $(VENV)/oracle ## print speed as ratios to PyTorch
	@$(BIN)/python -m benchmarks

sanitize-npu-sim: $(VENV)/oracle ## run the NPU simulator under the address, leak, undefined and thread sanitizers
	@MINDTORCH_SANITIZE=1 $(BIN)/python -m pytest tests/npu/test_sanitizers.py

sanitize-kernels: $(VENV)/oracle ## run the C kernels under the address, undefined and thread sanitizers
	@MINDTORCH_SANITIZE=1 $(BIN)/python -m pytest tests/mindtorch_v2/test_kernel_sanitizers.py

libraries: $(LIBRARIES)/base ## run Hugging Face and other libraries and compare with PyTorch's figures; writes docs/libraries.md
	@echo "-- running libraries on top of torch"
	@PYTHONPATH=tests $(LIBRARIES)/bin/python -m libraries.check --page docs/libraries.md

libraries-quick: $(LIBRARIES)/base ## run a case or two of each library
	@echo "-- running libraries on top of torch, a few cases of each"
	@PYTHONPATH=tests $(LIBRARIES)/bin/python -m libraries.check --quick

lint: $(VENV)/tools ## check style
	@$(BIN)/ruff check src tests benchmarks examples as-torch tools

types: $(VENV)/tools ## check types
	@$(BIN)/mypy

docs: $(VENV)/base ## regenerate late_names.py and the pages docs/ops.md, docs/kernels.md, docs/coverage.md, docs/schema.md
	@$(BIN)/python -m mindtorch_v2._ops.find_late_names
	@$(BIN)/python -m mindtorch_v2._docs docs
	@$(BIN)/python -m mtprof.schema_page docs/schema.md

clean: ## remove what the other targets made
	rm -rf $(VENV) build demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find src \( -name '_recorder.*.so' -o -name '_kernels.*.so' -o -name '_launch.*.so' -o -name '_walk.*.so' \) -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
