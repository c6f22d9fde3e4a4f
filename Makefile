# Python 3.11+, make and git are all that is assumed. T=path narrows the tests.
PYTHON ?= python3
T ?= tests
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
COVERAGE := $(BIN)/python -m coverage
UNIT := not endurance and not cloud and not browser and not interop and not artifacts
PIP := bin/python -m pip install --quiet --disable-pip-version-check --require-hashes
WORLD_ENV := $(abspath $(or $(SANDBOX_STATE),.sandbox)/$(or $(SANDBOX_PORT),4000)/env)
UV := .venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml
# `sam build` wants the interpreter of the functions' runtime; .venv-sam is made with it and has it.
PYTHON313 ?= $(firstword $(shell for p in python3.13 $$HOME/.pyenv/versions/3.13.*/bin/python3.13; do "$$p" -c '' 2>/dev/null && echo "$$p"; done))
SAM := SAM_CLI_TELEMETRY=0 PATH="$(CURDIR)/.venv-sam/bin:$$PATH" .venv-sam/bin/sam
STAGE ?= default
export PYTHONPATH := layers/common:functions

.PHONY: help setup dev demo listen trigger test unit endurance cloud browser interop coverage screenshots simulate soak simulate-mutants bench lint fmt docs check lock merchant build rehearsal-build artifacts deploy rehearse logs clean

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  %-16s %s\n", $$1, $$2 }'

setup: .venv/stamp .venv-cloud/stamp ## install everything into this folder, when it is missing or stale

dev: setup ## ⭐ the local world: shop, checkout, wallets; no account anywhere. Ctrl-C ends it
	@$(BIN)/python -m sandbox dev

demo: setup ## buy one thing without a browser, a line a step (WALLET=https://… pays)
	@$(BIN)/python -m sandbox demo $(if $(WALLET),--wallet "$(WALLET)")

listen: setup ## pass the shop's webhooks on to TO=http://localhost:…, in the running local world
	@$(BIN)/python -m sandbox listen --forward-to "$(TO)"

trigger: setup ## make EVENT=completed, expired, canceled or ping happen in it
	@$(BIN)/python -m sandbox trigger "$(EVENT)"

test: unit endurance cloud browser interop ## ⭐ all tests

unit: setup ## the tests that need nothing around them; then policies against the AWS calls seen
	@$(BIN)/python -m tests.aws_calls --forget
	$(PYTEST) -n 3 --dist worksteal -m "$(UNIT)" $(T)
	$(if $(filter tests,$(T)),@$(BIN)/python -m tests.aws_calls)

endurance: setup ## the tests that do one thing hundreds of times: threads that race, random worlds
	$(PYTEST) -n 2 -m endurance $(T) || [ $$? = 5 ]

cloud: setup ## the tests on the AWS emulator
	$(PYTEST) -m cloud $(T) || [ $$? = 5 ]

browser: setup ## the tests in Chromium
	$(PYTEST) -n 2 --dist loadfile -m browser $(T) || [ $$? = 5 ]

interop: setup ## the tests against the official packages (Node)
	$(PYTEST) -rP -m interop $(T) || [ $$? = 5 ]

coverage: setup ## unit tests and 200 simulated worlds, branches counted: 100 % of the core, 95 % of each other package
	@rm -rf .coverage.d && $(BIN)/python -m tests.aws_calls --forget
	$(COVERAGE) run -m pytest -n 3 --dist worksteal -m "$(UNIT)" tests && $(COVERAGE) run -m tests.simulation --worlds 200 --seed 1
	@$(BIN)/python -m tests.aws_calls && $(COVERAGE) combine --quiet && $(BIN)/python -m tests.coverage_gate

screenshots: setup ## pictures of the hosted page in every state, into screenshots/: phone, desktop, dark, Arabic
	$(BIN)/python -m tests.browser.screenshots

simulate: setup ## WORLDS= worlds from SEED=: customers, merchants and sweeps under faults, each step checked
	$(BIN)/python -m tests.simulation --worlds $(or $(WORLDS),1000) $(if $(SEED),--seed $(SEED))

soak: setup ## EVENTS= webhook events over days of simulated retries, each step checked
	$(BIN)/python -m tests.simulation --soak $(or $(EVENTS),10000) $(if $(SEED),--seed $(SEED))

simulate-mutants: setup ## sabotage the protocol, one line at a time: which check catches it
	$(BIN)/python -m tests.simulation --mutants

bench: setup ## what a thousand checkouts cost, counted; the first byte of a page, against a bare one
	@$(BIN)/python -m benchmarks.cost && $(BIN)/python -m benchmarks.page

lint: setup ## ⭐ style, types, directions of imports, template
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/cfn-lint template.yaml
	$(BIN)/mypy layers/common functions sandbox tests benchmarks
	$(BIN)/lint-imports

fmt: setup ## format, and mend what can be mended
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

docs: setup ## write the tables of the README and docs/openapi.json anew
	$(BIN)/python docs/tables.py
	$(BIN)/python -m api.openapi > docs/openapi.json

check: lint test ## ⭐ lint, then all tests

lock: .venv/lock/stamp ## resolve pyproject.toml anew into the hashed requirements files
	$(UV) --group dev -o requirements-dev.txt && $(UV) --group cloud -o sandbox/cloud-requirements.txt && $(UV) --group sam -o sandbox/sam-requirements.txt
	$(UV) --group layer -c requirements-dev.txt -o layers/common/requirements.txt
	$(UV) --group pay -c requirements-dev.txt -o layers/pay/requirements.txt

merchant: setup ## set up a merchant: NAME= WALLET= KEY_ID= PRIVATE_KEY= (in the local world, unless DATABASE_URL is set)
	@[ -n "$$DATABASE_URL" ] || . $(WORLD_ENV); $(BIN)/python -m checkout.cli setup --name "$(NAME)" --wallet-address "$(WALLET)" --key-id "$(KEY_ID)" --private-key "$(PRIVATE_KEY)"

build: .venv-sam/stamp ## what is deployed, into .aws-sam/build (STAGE= of samconfig.toml; wants Python 3.13)
	$(SAM) validate --lint --config-env $(STAGE)
	$(SAM) build --config-env $(STAGE) && .venv-sam/bin/python -m sandbox.artifacts .aws-sam/build

deploy: build ## build, and deploy STAGE= of samconfig.toml into the account of your credentials
	$(SAM) deploy --config-env $(STAGE)

artifacts: setup build rehearsal-build ## build for both processors; what was built is right, and answers under Lambda's own runtime client
	$(PYTEST) -rP -m artifacts $(T)

rehearsal-build: .venv-sam/stamp ## the same for this machine's processor, into .aws-sam/rehearsal
	$(SAM) build --build-dir .aws-sam/rehearsal --parameter-overrides Arch=$(subst aarch64,arm64,$(shell uname -m)) && .venv-sam/bin/python -m sandbox.artifacts .aws-sam/rehearsal

rehearse: setup .venv-rehearsal/stamp rehearsal-build ## deploy into the emulator, pay a checkout there, delete it (Linux; namespaces)
	$(BIN)/python -m sandbox.rehearsal

logs: .venv-sam/stamp ## the deployed logs as they come: FN=api, pay, dashboard, webhook_sender or expirer of STAGE=
	@stack=$$(sed -n '/^\[$(STAGE).global/,/^$$/s/^stack_name = "\(.*\)"/\1/p' samconfig.toml) && $(SAM) logs --tail --cw-log-group "/$$stack/$(or $(FN),api)"

clean: ## remove the local world's data, builds and caches
	rm -rf .sandbox .aws-sam .aws-calls .coverage.d .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

.venv/stamp: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv .venv && .venv/$(PIP) -r $< && touch $@

.venv-cloud/stamp: sandbox/cloud-requirements.txt
	$(PYTHON) -m venv .venv-cloud && .venv-cloud/$(PIP) -r $< && touch $@

.venv-rehearsal/stamp: sandbox/cloud-requirements.txt .venv-sam/stamp
	.venv-sam/bin/python -m venv .venv-rehearsal && .venv-rehearsal/$(PIP) -r $< && touch $@

.venv-sam/stamp: sandbox/sam-requirements.txt
	@[ -n "$(PYTHON313)" ] || { echo "Python 3.13, the functions' runtime, is needed on the PATH, or: make PYTHON313=/path/to/python3.13 …" >&2; exit 1; }
	$(PYTHON313) -m venv .venv-sam && .venv-sam/$(PIP) -r $< && touch $@

.venv/lock/stamp: .venv/stamp
	$(PYTHON) -m venv .venv/lock && .venv/lock/bin/python -m pip install --quiet uv==0.13.8 && touch $@
