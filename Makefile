# `make help` lists the targets. Needs Python 3.11 or newer and make; the real-broker tests also need
# Java 17 and Maven, and some of them Go.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The first Python that is new enough. Give PYTHON=... to choose another.
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		&& echo $$python && break; done)

# Tests or worlds that run at the same time. Tests on real brokers wait most of the time.
WORKERS ?= 2
# Some unit tests wait for threads and processes: one more at the same time takes an eighth less.
UNIT_WORKERS ?= 3
# Folders whose tests test-rest runs.
TESTS ?= tests
# `make test COVERAGE=1` measures which lines and branches run, but not of all tests: see
# tests/conftest.py.
MEASURED := $(if $(COVERAGE),--cov --cov-report=)

# Compiled modules are kept, also where the environment says otherwise: else each process of the
# tests begins by compiling some 700 modules, and rewriting the asserts of half of them.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help venv demo demo-report unit test coverage test-all test-rest test-deploy test-matrix lint types contracts scan audit check docs site fuzz clean
.PHONY: test-chaos soak fuzz-sockets simulate mutants
.PHONY: bench release kerberos

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

venv: $(STAMP) ## Create .venv and install the package with its development tools

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[pipeline,dev]'
	@touch $@

demo: $(STAMP) ## Show leader moves with hints off and on; needs only Python
	$(BIN)/python -m demo

demo-report: $(STAMP) ## Run the whole chain from leader moves to the report's page; needs Java 17
	$(BIN)/python -m demo.fleet_report

unit: $(STAMP) ## Run the unit tests
	$(BIN)/python -m pytest --numprocesses $(UNIT_WORKERS) --tier unit tests

test: $(STAMP) ## Run unit tests, the mock cluster, and some real brokers if Java 17 and Maven are there
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --tier test $(MEASURED) tests --ignore tests/deploy

coverage: $(STAMP) ## Report the coverage of `make test COVERAGE=1`; fail below the limits
	$(BIN)/python -m coverage report --include='*/leader_hints/wire/*,*/leader_hints/apis/*,*/leader_hints/core/*' --fail-under=97
	$(BIN)/python -m coverage report --fail-under=92

test-all: $(STAMP) ## Run all tests except test-deploy
	$(BIN)/python -m pytest --numprocesses $(WORKERS) tests --ignore tests/deploy

test-rest: $(STAMP) ## Run the tests of test-all that test leaves out; TESTS=tests/pipeline
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --tier rest $(TESTS) --ignore tests/deploy

kerberos: $(STAMP) ## Install what sasl.mechanism GSSAPI needs; compiles with libkrb5-dev
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[kerberos]'

test-deploy: $(STAMP) ## Check and run the deployment files; needs root, buildah and podman
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[deploy]'
	$(BIN)/python -m tests.deploy.tools
	$(BIN)/python -m pytest tests/deploy

simulate: $(STAMP) ## Run simulated clusters until one breaks a rule; SIMULATE="--first 1000 --seeds 500"
	$(BIN)/python -m tests.world --workers $(WORKERS) $(SIMULATE)

mutants: $(STAMP) ## Plant defects one by one and report what finds them; MUTANTS="'no doubts'"
	$(BIN)/python -m tests.mutants $(MUTANTS)

test-matrix: $(STAMP) ## Run every client with every broker version; writes docs/compatibility.md
	$(BIN)/python -m tests.matrix $(MATRIX)

test-chaos: $(STAMP) ## Inject faults into real brokers for 20 minutes, with and without proxies
	$(BIN)/python -m tests.chaos $(CHAOS)

soak: $(STAMP) ## Open and close 2000 connections for 20 minutes, then keep 9000 open
	$(BIN)/python -m tests.soak $(SOAK)

lint: $(STAMP) ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## Check types
	$(BIN)/mypy

contracts: $(STAMP) ## Check the layers' imports
	$(BIN)/lint-imports

scan: $(STAMP) ## Scan the code for security problems
	$(BIN)/bandit -q -c pyproject.toml -r proxy

audit: $(STAMP) ## Check constraints.txt against known vulnerabilities; needs the network
	$(BIN)/python -m tests.audit

check: lint types contracts scan ## Run lint, types, contracts and scan

fuzz: $(STAMP) ## Send a million mutated messages through links of all kinds
	$(BIN)/python -m tests.fuzz --messages 1000000

fuzz-sockets: $(STAMP) ## Attack the listeners and the admin server for five minutes
	$(BIN)/python -m tests.fuzz.sockets $(FUZZ)

docs: $(STAMP) ## Write the pages of docs/ that are generated from the code
	$(BIN)/python -m tests.docs.pages

site: $(STAMP) ## Build the documentation site into build/site; any warning fails
	$(BIN)/mkdocs build --strict

bench: $(STAMP) ## Run a benchmark, such as WHAT=stall; without WHAT list them
	$(BIN)/python -m bench $(or $(WHAT),--help) $(ARGS)

release: $(STAMP) ## Build wheel, sdist, chart, image, SBOM and checksums of HEAD into dist/
	$(BIN)/python -m release $(ARGS)

clean: ## Remove the environment, caches and builds
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
