# Python 3.11+, make and git are all that is assumed. T=path narrows the tests.
PYTHON ?= python3
T ?= tests
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
PIP := bin/python -m pip install --quiet --disable-pip-version-check --require-hashes
WORLD_ENV := $(abspath $(or $(SANDBOX_STATE),.sandbox)/$(or $(SANDBOX_PORT),4000)/env)
UV := .venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml
export PYTHONPATH := layers/common:functions

.PHONY: help setup dev demo test unit cloud browser interop simulate soak simulate-mutants lint fmt docs check lock merchant clean

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  %-16s %s\n", $$1, $$2 }'

setup: .venv/stamp .venv-cloud/stamp ## install everything into this folder, when it is missing or stale

dev: setup ## ⭐ the local world: shop, checkout, wallets; no account anywhere. Ctrl-C ends it
	@$(BIN)/python -m sandbox dev

demo: setup ## buy one thing without a browser, a line a step (WALLET=https://… pays)
	@$(BIN)/python -m sandbox demo $(if $(WALLET),--wallet "$(WALLET)")

test: unit cloud browser interop ## ⭐ all tests

unit: setup ## the tests that need nothing around them
	$(PYTEST) -n 2 -m "not cloud and not browser and not interop" $(T)

cloud: setup ## the tests on the AWS emulator
	$(PYTEST) -m cloud $(T) || [ $$? = 5 ]

browser: setup ## the tests in Chromium
	$(PYTEST) -m browser $(T) || [ $$? = 5 ]

interop: setup ## the tests against the official packages (Node)
	$(PYTEST) -rP -m interop $(T) || [ $$? = 5 ]

simulate: setup ## WORLDS= worlds from SEED=: customers, merchants and sweeps under faults, each step checked
	$(BIN)/python -m tests.simulation --worlds $(or $(WORLDS),1000) $(if $(SEED),--seed $(SEED))

soak: setup ## EVENTS= webhook events over days of simulated retries, each step checked
	$(BIN)/python -m tests.simulation --soak $(or $(EVENTS),10000) $(if $(SEED),--seed $(SEED))

simulate-mutants: setup ## sabotage the protocol, one line at a time: which check catches it
	$(BIN)/python -m tests.simulation --mutants

lint: setup ## ⭐ style, types, directions of imports, template
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/cfn-lint template.yaml
	$(BIN)/mypy layers/common functions sandbox tests benchmarks
	$(BIN)/lint-imports

fmt: setup ## format, and mend what can be mended
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

docs: setup ## write the tables of the README and docs/openapi.json anew
	$(BIN)/python docs/tables.py
	$(BIN)/python -m api.openapi > docs/openapi.json

check: lint test ## ⭐ all that CI runs

lock: .venv/lock/stamp ## resolve pyproject.toml anew into the hashed requirements files
	$(UV) --group dev -o requirements-dev.txt && $(UV) --group cloud -o sandbox/cloud-requirements.txt
	$(UV) --group layer -c requirements-dev.txt -o layers/common/requirements.txt
	$(UV) --group pay -c requirements-dev.txt -o layers/pay/requirements.txt

merchant: setup ## set up a merchant: NAME= WALLET= KEY_ID= PRIVATE_KEY= (in the local world, unless DATABASE_URL is set)
	@[ -n "$$DATABASE_URL" ] || . $(WORLD_ENV); $(BIN)/python -m checkout.cli setup --name "$(NAME)" --wallet-address "$(WALLET)" --key-id "$(KEY_ID)" --private-key "$(PRIVATE_KEY)"

clean: ## remove the local world's data, builds and caches
	rm -rf .sandbox .aws-sam .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

.venv/stamp: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv .venv && .venv/$(PIP) -r $< && touch $@

.venv-cloud/stamp: sandbox/cloud-requirements.txt
	$(PYTHON) -m venv .venv-cloud && .venv-cloud/$(PIP) -r $< && touch $@

.venv/lock/stamp: .venv/stamp
	$(PYTHON) -m venv .venv/lock && .venv/lock/bin/python -m pip install --quiet uv==0.13.8 && touch $@
