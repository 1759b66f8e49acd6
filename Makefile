# What can be done here. `make` alone lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.7
ARGS ?= chat
QUESTION := Say hello.
PREFIX ?= $(HOME)/.local
PYTEST_ARGS ?=
# three more than there are cores: tests wait for the processes they start
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 3)
TSC ?= $(if $(shell command -v tsc),tsc,npx --yes --package typescript@5 -- tsc)
# Build tools ask the machine's own package settings; nothing here names a registry.
UV := $(BIN)/uv --no-progress

# What is installed is compiled once, not at every start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run install test check check-pages format layers soak integration bench package lock clean docs pictures mutants coverage

help:  ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit("ollm needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip --disable-pip-version-check -qq --python $(BIN)/python install --root-user-action=ignore uv==$(UV_VERSION)

$(VENV)/.run: requirements/run.txt pyproject.toml | $(BIN)/uv
	@$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/run.txt
	@$(UV) pip install -q --python $(BIN)/python --no-deps -e .
	@touch $@

$(VENV)/.test: requirements/dev.txt $(VENV)/.run
	@$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@touch $@

run: $(VENV)/.run  ## install, fetch the embedded model once, and chat (without a terminal: one question); ARGS='-p "Say hello"' for one shot
	@$(BIN)/ollm models get smollm2 --if-missing
	@if [ "$(origin ARGS)" = file ] && ! { [ -t 0 ] && [ -t 1 ]; }; then \
	echo "> $(QUESTION)"; $(BIN)/ollm -p "$(QUESTION)" </dev/null; else $(BIN)/ollm $(ARGS); fi

install: $(VENV)/.run  ## put the command ollm on your PATH, in PREFIX/bin (~/.local/bin)
	@mkdir -p "$(PREFIX)/bin" && ln -sf "$(abspath $(BIN))/ollm" "$(PREFIX)/bin/ollm"
	@echo "Installed $(PREFIX)/bin/ollm."
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "Add $(PREFIX)/bin to your PATH." ;; esac

test: $(VENV)/.test  ## layers, then every test, the long files first
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

check: $(VENV)/.test  ## format, lint and strict types
	@$(BIN)/ruff format --check -q .
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy
	@$(MAKE) -s check-pages

check-pages:  ## types of the pages' JavaScript, where Node is at hand
	@if $(TSC) --version >/dev/null 2>&1; then $(TSC) -p src/ollm/daemon/web/jsconfig.json; \
	else echo "pages: types not checked (no Node with TypeScript here)"; fi

format: $(VENV)/.test  ## rewrite the code in the house format
	@$(BIN)/ruff format -q .
	@$(BIN)/ruff check -q --fix .
	@$(BIN)/python -m ollm.tools.catalogue

soak: $(VENV)/.test  ## the same tests with thousands of kills, trees and races
	@OLLM_SOAK=1 $(BIN)/python -m pytest -q -m soak $(PYTEST_ARGS)

integration: $(VENV)/.test  ## try real MCP and model servers from the registries, kept in a cache; RECORD=1 writes down what they say
	@OLLM_INTEGRATION=1 $(if $(RECORD),OLLM_INTEGRATION_RECORD=1) $(BIN)/python -m pytest -q tests/integration $(PYTEST_ARGS)

bench: $(VENV)/.test  ## measure, beside a baseline in the same run
	@$(BIN)/python -m bench $(BENCH) $(if $(SAVE),--save)

mutants: $(VENV)/.test  ## break one place at a time with cosmic-ray and see whether a test fails; ARGS="--count 40 --packages policy" or ARGS=--named
	@$(BIN)/python -m bench.mutants $(if $(filter chat,$(ARGS)),,$(ARGS))

coverage: $(VENV)/.test  ## run the tests and print which lines they reach
	@mkdir -p build && COVERAGE_FILE=build/coverage $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --cov=ollm --cov-report=term:skip-covered $(PYTEST_ARGS)

docs: $(VENV)/.test  ## write the generated pages of docs/
	@$(BIN)/python docs/generate.py

pictures: $(VENV)/.test  ## draw the pictures of the screen and the film in docs/ from a scripted talk
	@$(BIN)/python docs/pictures.py

package: $(BIN)/uv  ## build the wheel and the source package, check them, and try them in empty environments
	@$(BIN)/python packaging/try_package.py $(BIN)/uv

lock: $(BIN)/uv  ## resolve the dependencies anew
	@$(UV) pip compile -q --universal --generate-hashes --no-annotate --custom-compile-command "make lock" --extra acp --extra daemon --extra embedded --extra mcp --extra search --extra code pyproject.toml -o requirements/run.txt
	@$(UV) pip compile -q --universal --generate-hashes --no-annotate --custom-compile-command "make lock" --extra acp --extra daemon --extra embedded --extra mcp --extra search --extra code --extra postgres --group dev pyproject.toml -c requirements/run.txt -o requirements/dev.txt

clean:  ## remove what was built
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
