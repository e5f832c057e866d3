# Everything starts from a clean clone with make and Python 3.11 or newer.
#
#   make help     every target, in one line each
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
# In the order of this file; the text behind `##` is what `make help` says of a target.
.PHONY: help sweep smoke check test env clean

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /make \1|/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r target text; do printf '%-12s %s\n' "$$target" "$$text"; done
	@echo "Settings: PYTHON=python3.13 VENV=.venv-3.13, EXTRAS=dev,torch, JOBS=2, BUDGET=10m"

sweep: $(LIGHT) ## look for trouble for BUDGET (20s), with the light install
	@echo "sweep: looking for trouble for $(BUDGET)"
	@$(RUN) -m harness sweep --budget $(BUDGET)

smoke: $(LIGHT) ## the gate of every change: fixed seeds of every scenario
	@echo "smoke: running the smoke scenarios"
	@$(RUN) -m harness smoke

check: $(DEV) ## format, lint, types, tidy
	@echo "check: format"
	@$(RUN) -m ruff format --check .
	@echo "check: lint"
	@$(RUN) -m ruff check .
	@echo "check: types"
	@$(RUN) -m mypy
	@echo "check: tidy"
	@$(RUN) -m ci.tidy

test: check ## check, then every test; what a bare make does
	@echo "test: running every test in $(JOBS) processes"
	@$(RUN) -m pytest -n $(JOBS) -m "slow or not slow"

env: $(DEV) ## only set up what check and test need
	@echo "env: $(VENV) is ready"

clean: ## remove the environment and caches; findings in artifacts/ stay
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
