# Everything starts from a clean clone with make and Python 3.11 or newer.
#
#   make sweep    find trouble for 20 seconds, with the light install
#   make smoke    the quick gate: every smoke scenario
#   make check    format, lint, types, tidy
#   make test     check, then every test
#   make env      only set up what check and test need
#   make clean    remove the environment and caches; findings in artifacts/ stay
#
# Another interpreter, in an environment of its own:
#   make test PYTHON=python3.13 VENV=.venv-3.13
# With torch, which no test needs but some want:
#   make test EXTRAS=dev,torch

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= dev
# Test processes; 0 runs the tests in one process, for a debugger.
JOBS ?= 2
BUDGET ?= 20s

RUN := $(VENV)/bin/python
# Refusing to install outside an environment keeps a damaged one from reaching the system's Python.
PIP := $(RUN) -m pip --require-virtualenv --disable-pip-version-check --no-input --quiet
LIGHT := $(VENV)/.light-stamp
DEV := $(VENV)/.$(EXTRAS)-stamp

.DEFAULT_GOAL := test
.DELETE_ON_ERROR:
# Two installs at once into one environment would break it.
.NOTPARALLEL:
.PHONY: sweep smoke check test env clean

sweep: $(LIGHT)
	@echo "sweep: looking for trouble for $(BUDGET)"
	@$(RUN) -m harness sweep --budget $(BUDGET)

smoke: $(LIGHT)
	@echo "smoke: running the smoke scenarios"
	@$(RUN) -m harness smoke

check: $(DEV)
	@echo "check: format"
	@$(RUN) -m ruff format --check .
	@echo "check: lint"
	@$(RUN) -m ruff check .
	@echo "check: types"
	@$(RUN) -m mypy
	@echo "check: tidy"
	@$(RUN) -m ci.tidy

test: check
	@echo "test: running every test in $(JOBS) processes"
	@$(RUN) -m pytest -n $(JOBS) -m "slow or not slow"

env: $(DEV)
	@echo "env: $(VENV) is ready"

clean:
	@echo "clean: removing $(VENV), caches and build output"
	@if [ -f $(VENV)/pyvenv.cfg ]; then rm -rf $(VENV); fi
	@rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name .git -prune -o -name __pycache__ -prune -exec rm -rf {} +

# A stamp is written last, so a set-up that failed or was interrupted runs again.
$(LIGHT): pyproject.toml
	$(need-python)
	@rm -f $@
	@$(make-venv)
	@echo "env: installing unikv and what it needs to run"
	@$(PIP) install --editable .
	@touch $@

# Everything in the light install is in this one too.
$(DEV): pyproject.toml ci/constraints.txt
	$(need-python)
	@rm -f $@
	@$(make-venv)
	@echo "env: installing unikv with $(EXTRAS)"
	@$(PIP) install --constraint ci/constraints.txt --editable ".[$(EXTRAS)]"
	@touch $(LIGHT) $@

# Expanded when a set-up is about to run, never for a target that needs none.
py-say = $(shell $(PYTHON) -c 'import sys; print($1)' 2>/dev/null)
need-python = $(if $(filter True,$(call py-say,sys.version_info >= (3$(comma) 11))),,$(error \
	Python 3.11 or newer is needed, but $(PYTHON) is $(or $(call py-say,sys.version.split()[0]),not\
	there); name another one: make $(MAKECMDGOALS) PYTHON=python3.12))
comma := ,

# One that was interrupted in the making is made anew.  A folder that is not an environment is
# never cleared: VENV may name anything.  Without pyvenv.cfg, bin/python is the system's Python.
define make-venv
if [ -e $(VENV) ] && [ ! -f $(VENV)/pyvenv.cfg ]; then \
	echo "error: $(VENV) is there but is no virtual environment;" \
		"remove it, or name another folder: VENV=.venv-unikv" >&2; exit 1; \
fi; \
$(RUN) -c '$(venv-works)' 2>/dev/null || { \
	echo "env: making $(VENV) with $(PYTHON)"; \
	$(PYTHON) -m venv --clear $(VENV); }
endef
venv-works := import pip, sys; sys.exit(sys.version_info < (3, 11) or sys.prefix == sys.base_prefix)
