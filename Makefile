# Everything from a fresh clone needs Rust (rustup), Python 3.11 or later, a C compiler and GNU make.
#
#   make demo     three conversations through nanobot without and with the package
#   make examples the environment that examples/ runs in: .cache/examples/bin/python
#   make eval     what compression keeps, on recorded conversations: docs/evaluation.md
#   make docs     this documentation as pages, offline: .cache/site/index.html
#   make train    the learned trees of src/select/usage_trees.txt, from the same recordings
#   make test     all tests, the real loops with one nanobot release of each generation, the main ones with six more
#   make test-fast  the quick ones: the core but for its stores, with a quarter of the cases of a property; the package but for
#                 command lines, processes and stores; no hostile input, token counts of others, documentation, examples or real loops
#   make matrix   the real loops with all sixteen releases
#   make check    what CI runs: format, lints, types, tests
#   make fuzz     hostile inputs, five minutes for each target of fuzz/: FUZZ_SECONDS, FUZZ_TARGETS
#   make coverage lines and branches that the tests of the core and of the package run
#
# PYTHON selects the interpreter that .venv is made of: `make test PYTHON=python3.13`.

PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
PY := $(BIN)/python

# One interpreter for maturin, clippy and the tests, so that pyo3 is not built again for each of them.
export PYO3_PYTHON := $(CURDIR)/$(PY)
export CARGO_TERM_COLOR ?= auto
# litellm: the table of models in its wheel, not from the network.
export LITELLM_LOCAL_MODEL_COST_MAP := True
# Else each of the many processes that tests start compiles nanobot and its libraries anew: 3.2 s in place of 1.4 s.
unexport PYTHONDONTWRITEBYTECODE

# In the order in which files of tests begin: those that take longest first, so that no process is left with one at the end.
TESTED := $(wildcard tests/examples tests/docs tests/browser tests/nanobot tests/terminal tests/conformance tests/python)
TYPED := $(wildcard python tests scripts benches evaluation training examples/litellm_client.py)
# In the environment of the examples, with the frameworks that they show.
EXAMPLES := $(filter-out %/litellm_client.py,$(wildcard examples/*.py tests/examples/check_*.py tests/examples/*_agent.py) \
	$(foreach name,langchain pydantic_ai smolagents,python/nanobot_context/adapters/$(name).py))
# Tests of the package in one process each, without those that take long.
SLOW := activation bad_input breakpoints chat_app cli client_errors forks interrupts nanobot_files openai_agents proxy reasoning_rules \
	recovery session_processes session_replay sessions sessions_async sessions_input sessions_state sessions_summaries shim_fuse surface \
	vocabulary_loads wrap
FAST := $(filter-out $(addprefix tests/python/unit/test_,$(addsuffix .py,$(SLOW))),$(wildcard tests/python/unit/test_*.py))
WHEEL_SOURCES := Cargo.toml Cargo.lock .cargo/config.toml pyproject.toml README.md LICENSE \
	$(shell find src python licenses -type f ! -name '*.pyc' ! -name '*.so' 2>/dev/null)

.PHONY: help setup build wheel envs plays examples test test-fast matrix check lint lint-rust lint-python lint-examples fuzz coverage demo bench eval train docs
.PHONY: requirements clean

help:
	@sed -n 's/^#   \(make\|  \)/\1/p' Makefile

## Environment ########################################################################################################

setup: $(VENV)/.dev.stamp

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is older than 3.11; hint: make PYTHON=python3.13 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.dev.stamp: requirements/dev.txt | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check $$(grep '^uv==' $<)
	$(UV) pip install --quiet --python $(PY) -r $<
	@touch $@

$(VENV)/.vocabularies.stamp: requirements/vocabularies.txt $(VENV)/.dev.stamp
	$(UV) pip install --quiet --python $(PY) --no-deps -r $<
	@touch $@

$(VENV)/.agents.stamp: requirements/agents.txt $(VENV)/.dev.stamp
	$(UV) pip install --quiet --python $(PY) --no-deps -r $<
	@touch $@

$(VENV)/.bench.stamp: requirements/bench.txt $(VENV)/.dev.stamp
	$(UV) pip install --quiet --python $(PY) --no-deps -r $<
	@touch $@

$(VENV)/.train.stamp: requirements/training.txt $(VENV)/.dev.stamp
	$(UV) pip install --quiet --python $(PY) -r $<
	@touch $@

$(VENV)/.docs.stamp: requirements/docs.txt $(VENV)/.dev.stamp
	$(UV) pip install --quiet --python $(PY) -r $<
	@touch $@

# The exact pins from the *.in files. The newest releases: `make requirements UPGRADE=--upgrade`.
requirements: setup
	cd requirements && for name in dev docs examples peers training "vocabularies --no-deps" "agents --no-deps" "bench --no-deps"; do \
		set -- $$name; \
		UV_CUSTOM_COMPILE_COMMAND="make requirements" ../$(UV) pip compile --quiet --universal --python-version 3.11 \
			--no-annotate --no-emit-index-url $(UPGRADE) $$2 $$1.in -o $$1.txt || exit 1; \
	done

## Package ############################################################################################################

build: $(VENV)/.wheel.stamp

$(VENV)/.wheel.stamp: $(WHEEL_SOURCES) $(VENV)/.dev.stamp
	$(LOCK) $(MAKE) --no-print-directory wheel
	@touch $@

# Two builds at once would take target/maturin from each other, so they wait where `flock` exists.
LOCK := $(if $(shell command -v flock),flock $(VENV)/.wheel.lock)

# With what `make eval` and `make train` ask for; a release is built without it.
wheel:
	@rm -rf dist
	$(BIN)/maturin build --release --locked --compression-level 9 --features python,evaluation --out dist --interpreter $(PY)
	$(UV) pip install --quiet --python $(PY) --no-deps --reinstall dist/*.whl

# One environment for each nanobot release that is played, in .cache/nanobot.
envs: setup build
	$(PY) scripts/nanobot_envs.py $$($(PY) tests/nanobot/plays.py --list)

# The real loops, in .cache/plays, where tests read what they did. Played again when anything they depend on changes.
plays: envs
	$(PY) tests/nanobot/plays.py

# What examples/ shows the package with, in .cache/examples.
examples: setup build
	$(PY) -m scripts.examples_env

## Tests ##############################################################################################################

# What `make test` needs before its first test.
ready: setup build plays examples $(VENV)/.vocabularies.stamp $(VENV)/.agents.stamp $(VENV)/.docs.stamp
	@scripts/install_test_tools.sh
	@scripts/install_chromium.sh
	cargo test --locked --no-run

# Each file of tests is run by one of the processes. They wait for servers, locks and disks nearly half of the time: three for two cores.
PYTEST := $(PY) -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

test: ready
	cargo test --locked
	$(PYTEST) --durations 10 $(TESTED)
	@echo "Left out: the tests listed as SKIPPED above; all real loops with all $(words $(wildcard tests/nanobot/locks/*.txt)) nanobot releases: \`make matrix\`;"
	@echo "10,000 cases a property are tried with NANOBOT_CONTEXT_SLOW=1; recorded conversations are read by \`make eval\`."

# With the core of the dev profile, in .cache/fast: `make build` takes minutes.
test-fast: setup
	PROPTEST_CASES=64 cargo test --locked --lib --test rust -- --skip store_ --skip worst_case --skip reference_tokenizer
	@rm -rf .cache/fast
	$(BIN)/maturin build --quiet --profile dev --locked --compression-method stored --features python,evaluation --out .cache/fast/dist --interpreter $(PY)
	@$(PY) -m zipfile -e .cache/fast/dist/*.whl .cache/fast/package
	PYTHONPATH=.cache/fast/package $(PYTEST) $(FAST)

matrix: export NANOBOT_CONTEXT_MATRIX := 1
matrix: plays
	$(PYTEST) tests/nanobot

lint: lint-rust lint-python lint-examples

lint-rust: setup
	cargo fmt --check
	cargo clippy --all-targets --locked --features python -- -D warnings

lint-python: setup $(VENV)/.docs.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(TYPED)

lint-examples: setup
	$(PY) -m scripts.examples_env --pins
	$(BIN)/mypy --cache-dir .mypy_cache/examples \
		--python-executable .cache/examples/bin/python $(EXAMPLES)

check: lint test

## Searches ###########################################################################################################

FUZZ_VERSION := 0.13.2
FUZZ_SECONDS ?= 300
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))

# AddressSanitizer needs flags that only a nightly compiler takes without being asked. What fails is in fuzz/artifacts.
fuzz: export RUSTC_BOOTSTRAP := 1
fuzz:
	@cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz --version $(FUZZ_VERSION)
	cargo fuzz build
	for target in $(FUZZ_TARGETS); do \
		dictionary=fuzz/dictionaries/$$target.txt; \
		cargo fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=4096 -max_len=8192 -len_control=0 -print_final_stats=1 \
			$$([ ! -f $$dictionary ] || echo -dict=$$dictionary) || exit 1; \
	done

coverage: setup $(VENV)/.vocabularies.stamp $(VENV)/.agents.stamp
	@scripts/install_test_tools.sh
	PYTHON=$(PY) scripts/coverage.sh

## Shows ##############################################################################################################

# `make demo NANOBOT=0.1.4.post4` shows another release. One with litellm has the vocabulary that the model server counts by.
NANOBOT ?= 0.3.5

demo: setup build
	$(PY) scripts/nanobot_envs.py $(sort 0.1.4.post4 $(NANOBOT))
	NANOBOT=$(NANOBOT) $(PY) demo/demo.py

bench: setup build $(VENV)/.bench.stamp
	$(PY) benches/run.py

# The recordings and the measures stand outside of the repository. Some parts: python -m evaluation.run --help
EVAL_DATA ?= ../shared/data/trajectories
EVAL_TOOLS ?= ../shared/eval

eval: envs $(VENV)/.bench.stamp
	$(PY) -m evaluation.run --data $(EVAL_DATA) --tools $(EVAL_TOOLS) $(EVAL_ARGUMENTS)

# Part of the source: commit src/select/usage_trees.txt and training/README.md together. See training/README.md.
train: setup build $(VENV)/.train.stamp
	$(PY) -m training.usage $(EVAL_DATA) $(TRAIN_ARGUMENTS)

# Strict: a link that leads nowhere is an error. Nothing is loaded from the network, here or by the pages.
docs: setup build $(VENV)/.docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .cache dist target .mypy_cache .ruff_cache .pytest_cache .hypothesis
