# Two commands: `make demo` trains a skill with the embedded model, `make test` checks everything.
# Both make their own environment in .venv and need Python 3.11 or newer, nothing else; `make test` also wants bubblewrap.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input

# What is compiled is kept, also where the machine's settings forbid it: else each of the suite's many processes compiles
# everything it imports anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-slow docs-outputs docs-outputs-slow bubblewrap test-extras clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.demo-installed
	@$(BIN)/sharpen demo

test: $(VENV)/.test-installed bubblewrap
	@$(BIN)/python tests/side_by_side.py

# Attacks and simulations that take minutes: fault injection at every await, power loss, cheating programs.
test-slow: $(VENV)/.test-installed bubblewrap
	@echo "== pytest, slow tests" && $(BIN)/python -m pytest -m slow tests

# The outputs that the README and the docs show, from their commands as they are today. The second one also runs what takes
# minutes with the embedded model (`make demo` in the README).
docs-outputs: $(VENV)/.test-installed
	@$(BIN)/python tools/docs_outputs.py
docs-outputs-slow: $(VENV)/.test-installed
	@$(BIN)/python tools/docs_outputs.py --slow README.md docs/first-training.md

# Programs that models write run in bubblewrap, which is a Debian package. Without it the tests of the sandbox fail.
bubblewrap:
	@command -v bwrap >/dev/null && exit 0; \
	root="env DEBIAN_FRONTEND=noninteractive"; [ "$$(id -u)" = 0 ] || root="sudo -n $$root"; \
	install="$$root apt-get install -qq -y --no-install-recommends bubblewrap"; \
	if command -v apt-get >/dev/null && $$root true 2>/dev/null; then \
	  echo "== installing bubblewrap"; \
	  $$install >/dev/null 2>&1 || { $$root apt-get update -qq && $$install; } >/dev/null 2>&1; \
	fi; \
	command -v bwrap >/dev/null || \
	  echo "bubblewrap is missing and could not be installed; the tests that need it will fail: apt install bubblewrap" >&2

# Trainers that drive DSPy and Trace are tested in an environment of their own, with the newest versions their extras allow.
test-extras: $(VENV)-extras/.installed
	@echo "== pytest, with dspy and trace-opt" && $(VENV)-extras/bin/python -m pytest tests/trainers/adapters

clean:
	@rm -rf $(VENV) $(VENV)-extras .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "removed $(VENV) and the caches; runs/ is kept"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "sharpen needs Python 3.11 or newer, and '$(PYTHON)' is not that ($$($(PYTHON) --version 2>&1 | head -n 1));" >&2; \
	  echo "name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "== making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "could not make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }

$(VENV)/.demo-installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "== installing sharpen and the engine of the embedded model"
	@$(PIP) install --no-compile --constraint constraints.txt --editable '.[local]'
	@touch $@

$(VENV)/.test-installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "== installing sharpen and what its tests need"
	@$(PIP) install --no-compile --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.demo-installed

$(VENV)-extras/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "== making $(VENV)-extras with dspy and trace-opt"
	@$(BIN)/python -m venv $(VENV)-extras
	@$(VENV)-extras/bin/python -m pip --quiet --disable-pip-version-check --no-input install --editable '.[dev,dspy,trace]'
	@touch $@
