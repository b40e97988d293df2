# `make help` lists the targets. Needs Python 3.11 or newer and make; the real-broker tests also need
# Java 17 and Maven, and some of them Go.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The first Python that is new enough. Give PYTHON=... to choose another.
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		&& echo $$python && break; done)

# Tests that run at once. Those on real brokers wait most of their time.
WORKERS ?= 2
# `make test COVERAGE=1` measures which lines and branches run, at twice the time.
MEASURED := $(if $(COVERAGE),--cov --cov-report=)

.DEFAULT_GOAL := help
.PHONY: help venv demo demo-report unit test coverage test-all test-rest test-deploy test-matrix lint types contracts scan audit check docs site fuzz clean
.PHONY: test-chaos soak fuzz-sockets
.PHONY: bench release

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

venv: $(STAMP) ## Make .venv and install the package with all that its development needs

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[pipeline,dev]'
	@touch $@

demo: $(STAMP) ## Show leader moves with hints off and on, on an embedded cluster
	$(BIN)/python -m demo

demo-report: $(STAMP) ## Go from leader moves to the page of leader-hints-report; needs Java 17
	$(BIN)/python -m demo.fleet_report

unit: $(STAMP) ## Run the tests of the pure layers, and of Trio with fakes
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --tier unit tests

test: $(STAMP) ## Run unit, mock cluster and a slice of real brokers, fetched where Java and Maven are
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --tier test $(MEASURED) tests --ignore tests/deploy

coverage: $(STAMP) ## Report what `make test COVERAGE=1` measured; fails where it is too little
	$(BIN)/python -m coverage report --include='*/leader_hints/wire/*,*/leader_hints/apis/*,*/leader_hints/core/*' --fail-under=97
	$(BIN)/python -m coverage report --fail-under=92

test-all: $(STAMP) ## Run all tests but those of the deployment
	$(BIN)/python -m pytest --numprocesses $(WORKERS) tests --ignore tests/deploy

test-rest: $(STAMP) ## Run what `make test` leaves out of `make test-all`
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --tier rest tests --ignore tests/deploy

test-deploy: $(STAMP) ## Check and run the deployment's files; needs root, and Debian's buildah and podman
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[deploy]'
	$(BIN)/python -m tests.deploy.tools
	$(BIN)/python -m pytest tests/deploy

test-matrix: $(STAMP) ## Run every client with every broker version; writes docs/compatibility.md
	$(BIN)/python -m tests.matrix $(MATRIX)

test-chaos: $(STAMP) ## Do faults to real brokers for 20 minutes, with proxies and without
	$(BIN)/python -m tests.chaos $(CHAOS)

soak: $(STAMP) ## 2000 connections that come and go for 20 minutes, then 9000 links at once
	$(BIN)/python -m tests.soak $(SOAK)

lint: $(STAMP) ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## Check types
	$(BIN)/mypy

contracts: $(STAMP) ## Check which layer imports which
	$(BIN)/lint-imports

scan: $(STAMP) ## Look for what is unsafe in the package's code
	$(BIN)/bandit -q -c pyproject.toml -r proxy

audit: $(STAMP) ## Look whether packages in constraints.txt have known holes; needs the network
	$(BIN)/python -m tests.audit

check: lint types contracts scan ## All checks that run no code

fuzz: $(STAMP) ## One million mutated messages through links of all kinds
	$(BIN)/python -m tests.fuzz --messages 1000000

fuzz-sockets: $(STAMP) ## Attack a proxy's listeners and its admin server for five minutes
	$(BIN)/python -m tests.fuzz.sockets $(FUZZ)

docs: $(STAMP) ## Write the pages of docs/ that are made of the code
	$(BIN)/python -m tests.docs.pages

site: $(STAMP) ## Build the documentation site into build/site; any warning fails
	$(BIN)/mkdocs build --strict

bench: $(STAMP) ## Run the benchmark WHAT=stall, cost, ..., with ARGS; without WHAT list them
	$(BIN)/python -m bench $(or $(WHAT),--help) $(ARGS)

release: $(STAMP) ## Put wheel, sdist, chart, image, SBOM and checksums of HEAD into dist/
	$(BIN)/python -m release $(ARGS)

clean: ## Remove the environment, caches and builds
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
