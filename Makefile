# `make demo` and `make test` set up all they need: Python 3.11 or newer, make and a network for
# pip are enough. Nothing needs a GPU.

VENV := .venv
DEMO := .venv-demo
BIN := $(VENV)/bin
JOBS ?= 2
# Neighbouring tests stay in one process, so that what a module sets up is set up once.
PYTEST := $(BIN)/pytest -n $(JOBS) --dist worksteal

# The first Python at hand that is new enough; `make PYTHON=...` chooses another.
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python $(NEW_ENOUGH) 2>/dev/null && echo $$python && break; done)

.DEFAULT_GOAL := help
.PHONY: help venv test test-all soundness lint format demo bench tables fixtures dist wheel-compiled clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	while IFS='|' read -r target text; do printf '%-15s %s\n' "$$target" "$$text"; done

venv: $(VENV)/.stamp ## Set up the development environment in .venv

$(VENV)/.stamp: pyproject.toml
	$(call create,$(VENV),.[dev])

$(DEMO)/.stamp: pyproject.toml
	$(call create,$(DEMO),.)

# $(1) folder of the environment, $(2) what to install, editable: edits need no new installation.
define create
	@$(or $(PYTHON),false) $(NEW_ENOUGH) || { echo 'Python 3.11 or newer is needed: make PYTHON=PATH' >&2; exit 1; }
	@test -x $(1)/bin/pip || $(PYTHON) -m venv $(1) || { rm -rf $(1); exit 1; }
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '$(2)'
	@touch $@
endef

test: lint ## Lint, then all tests but the slow ones (of those, fixed samples)
	$(PYTEST)

test-all: lint ## Lint, then every test whole
	$(PYTEST) --run-slow

soundness: venv ## Replay verdicts in the emulator: no run may disprove what was proved
	$(BIN)/pytest tests/soundness --run-slow -rP -n $(JOBS)

lint: venv ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/packaging/arrows.py

format: venv ## Let ruff format and repair what it can
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

demo: $(DEMO)/.stamp ## Check kernels that come with the sources and show what is found
	@PATH="$(CURDIR)/$(DEMO)/bin:$$PATH" sh docs/demo.sh

bench: venv ## Measure, and write tables and plots to benchmarks/
	$(BIN)/python benchmarks/bench.py

tables: venv ## Build the parser's tables and templates from the grammar and the fixtures
	$(BIN)/python -m ptxlint.frontends.ptx.prebuild

fixtures: venv ## Compile the fixture kernels again
	$(BIN)/python fixtures/compile.py

dist: venv ## Build the source distribution, and the wheel from it, into dist/
	rm -rf build dist
	$(BIN)/python -m build --no-isolation

wheel-compiled: venv ## Build a wheel with machine code for this Python and machine into dist/
	PTXLINT_COMPILE=1 $(BIN)/python -m pip wheel --no-deps --no-build-isolation --wheel-dir dist .

clean: ## Delete environments, caches and build products
	rm -rf $(VENV) $(DEMO) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
	rm -rf .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
