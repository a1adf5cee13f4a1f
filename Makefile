# Everything from a fresh clone: `make demo` and `make test` set up what they need.
VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
# One BLAS thread: two on a busy machine were measured to be up to 600 times slower.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# Memory that is freed stays with the process: DuckDB, opened hundreds of times by the tests, takes
# and frees 10 MB each time, which without these took 21 ms instead of 13.
export MALLOC_TRIM_THRESHOLD_ ?= 268435456
export MALLOC_MMAP_THRESHOLD_ ?= 33554432
export MALLOC_TOP_PAD_ ?= 16777216
# Else each of the many processes of the tests would compile lrm again: 0.5 s of 1.4 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long coverage quick oldest lint format bench study docs graph package example pictures clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "lrm needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || \
	  { $(PYTHON) -m pip install --quiet virtualenv && $(PYTHON) -m virtualenv --quiet $(VENV); }

$(VENV)/.core: $(BIN)/python pyproject.toml
	@echo "Installing lrm into $(VENV) (once; about a minute) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	@echo "Installing lrm with its development tools into $(VENV) (once; a few minutes) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]'
	@touch $@ $(VENV)/.core

demo: $(VENV)/.core  ## run the main job on an embedded synthetic table
	@$(BIN)/lrm demo
	@echo 'To have lrm in this shell: source $(VENV)/bin/activate'

test: lint  ## the whole suite: style, types, laws, statistics, engines, command line
	@$(BIN)/python -m pytest -n 2 --dist worksteal

test-long: $(VENV)/.dev  ## thousands of random cases of what `make test` tries hundreds of; LRM_LONG=10 for ten times more
	@LRM_LONG=$${LRM_LONG:-1} $(BIN)/python -m pytest -n 2 --dist worksteal -m long $$(grep -rl --include='test_*.py' 'mark\.long' tests)

coverage: $(VENV)/.dev  ## which lines of lrm `make test` runs, as a table and in build/coverage; twice its time
	@$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered --cov-report=html

quick: $(VENV)/.dev  ## the suite without its statistical tests
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not long"

oldest:  ## the tests of tables, SQL and the command line with the lowest versions that pyproject.toml admits
	@$(PYTHON) -m venv build/oldest
	@build/oldest/bin/python -m pip install --quiet --disable-pip-version-check uv
	@build/oldest/bin/uv pip install --quiet --python build/oldest/bin/python --resolution lowest-direct -e '.[all,dev]'
	@# what an old driver leaves open is not for lrm to close, nor what its newer dependencies deprecate
	@build/oldest/bin/python -m pytest -n 2 -m "not slow and not long" -W ignore::pytest.PytestUnraisableExceptionWarning -W ignore::DeprecationWarning tests/tables tests/sql tests/cli

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@mkdir -p build
	@$(BIN)/lint-imports --no-logo --no-cache >build/imports.txt || { cat build/imports.txt; exit 1; }

format: $(VENV)/.dev
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## error and time ratios, side by side in one run
	@$(BIN)/python -m benchmarks

study: $(VENV)/.dev  ## the paper's experiments at an eighth of their size (five minutes), into build/study
	@$(BIN)/python -m study run --scale quick --jobs 2
	@$(BIN)/python -m study plot

docs: $(VENV)/.docs  ## the documentation as a searchable site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo 'open build/site/index.html'

$(VENV)/.docs: $(VENV)/.core pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

pictures: $(VENV)/.dev  ## take the pictures of the docs again, with Chromium
	@$(BIN)/python tests/report/pictures.py
	@$(BIN)/python tests/workbench/pictures.py

graph: $(VENV)/.dev  ## draw which packages and modules import which, into docs/img
	@$(BIN)/python tests/support/import_graph.py

package: $(VENV)/.dev  ## build wheel and sdist, install the wheel into an empty environment, run the demo there
	@rm -rf dist build/package
	@$(BIN)/python -m build --outdir dist .
	@$(PYTHON) -m venv build/package || $(PYTHON) -m virtualenv --quiet build/package
	@build/package/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	@build/package/bin/python -c "from importlib.resources import files; assert (files('lrm.workbench') / 'page' / 'codemirror.js').is_file()"
	@cd build/package && bin/lrm demo

example: $(VENV)/.dev  ## build the example of an engine in a package of its own, install it beside lrm, run the suite of all engines
	@rm -rf build/example
	@$(BIN)/python -m build --wheel --outdir build/example docs/examples/lrm-sqlite >/dev/null
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/example/site build/example/*.whl
	@PYTHONPATH=build/example/site $(BIN)/python -m pytest -p no:cacheprovider docs/examples/lrm-sqlite/tests

clean:
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
