# Needs Python 3.11 or newer, make and git; everything else is installed into this folder.
# T=path limits the tests to one folder or file.
PYTHON ?= python3
T ?= tests
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# The folder that has all tests of a marker, so that the others need not be collected.
in = $(if $(filter tests,$(T)),tests/$(1),$(T))
# In CI, a test with processes of its own runs once more if it ran into a time limit, and only then.
AGAIN := $(if $(CI),--reruns 1 --only-rerun "[Tt]imeout|timed out")
COVERAGE := $(BIN)/python -m coverage
CORE := layers/common/checkout/domain/*,layers/common/checkout/open_payments/*,layers/common/checkout/flows/*
# Unit tests that hardly reach a line which the others do not. They run without coverage, which doubles their time.
UNTRACED := $(patsubst %,tests/%.py,adapters/test_dynamo_races adapters/test_lists adapters/test_vault domain/test_strict_json \
	$(addprefix attacks/test_,addresses browsers passkeys seeded_bugs webhooks) flows/schedule/test_tally \
	$(addprefix functions/test_,dashboard_budgets dashboard_isolation dashboard_secrets loading money_received pay_callback \
	pay_injection pay_pages pay_submission recovery stalled_store two_devices) \
	test_docs test_documented_commands test_packaging test_plain_english test_service_bags test_wiring) \
	$(addprefix tests/,benchmarks fakes operations sandbox template)
UNIT := -m pytest -n 2 --dist worksteal -m "not endurance and not cloud and not browser and not interop and not lighthouse and not artifacts"
# Python compiles the modules that are imported, as they are: of all that is installed, few.
PIP_INSTALL := install --quiet --no-compile --disable-pip-version-check
PIP := bin/python -m pip $(PIP_INSTALL) --require-hashes
# Enough to run the local world. What only developers need (.venv/stamp) goes into the same .venv later.
RUN := .venv/run-stamp .venv-cloud/stamp
WORLD_ENV := $(abspath $(or $(SANDBOX_STATE),.sandbox)/$(or $(SANDBOX_PORT),4000)/env)
UV := .venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header
# `sam build` needs the Python version that the functions run on; .venv-sam is made with it.
PYTHON313 ?= $(firstword $(shell for p in python3.13 $$HOME/.pyenv/versions/3.13.*/bin/python3.13; do "$$p" -c '' 2>/dev/null && echo "$$p"; done))
SAM := SAM_CLI_TELEMETRY=0 PATH="$(CURDIR)/.venv-sam/bin:$$PATH" .venv-sam/bin/sam
STAGE ?= default
# The levels of `make test`. CI has `coverage` in place of `unit`.
STAGES ?= unit endurance cloud browser interop
# Of `make bench`. CI runs those that count; what the others time means nothing beside other work.
BENCHMARKS ?= cost callback cpu scaling neighbours hanging page growth burst official
export PYTHONPATH := layers/common:functions
# Images of Python set it, and then each process compiles all of our modules again.
unexport PYTHONDONTWRITEBYTECODE
# SAM and boto3 read AWS_DEFAULT_REGION only; either name is enough here.
ifdef AWS_REGION
export AWS_DEFAULT_REGION ?= $(AWS_REGION)
endif
# Taken as typed and passed in the environment: make and the shell would expand the $w of WALLET='$wallet.example/shop'.
override NAME := $(value NAME)
override WALLET := $(value WALLET)
override KEY_ID := $(value KEY_ID)
override PRIVATE_KEY := $(value PRIVATE_KEY)
export NAME WALLET KEY_ID PRIVATE_KEY

.PHONY: help setup dev demo listen trigger test unit endurance cloud browser lighthouse interop coverage screenshots simulate soak simulate-load simulate-mutants fuzz bench bench-cold lint fmt docs check lock package merchant build rehearsal-build artifacts preflight deploy remove rehearse restore-drill proving-day released-tables logs clean

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  %-16s %s\n", $$1, $$2 }'

setup: .venv/stamp .venv-cloud/stamp ## install everything that developers need into this folder (run by the other targets)

dev: $(RUN) ## ⭐ run the local world: demo shop, checkout, wallets; no account needed. Ctrl-C stops it
	@$(BIN)/python -m sandbox dev

demo: $(RUN) ## buy something from the command line and print each step (WALLET=https://… pays)
	@$(BIN)/python -m sandbox demo $(if $(WALLET),--wallet "$$WALLET")

listen: $(RUN) ## forward the demo shop's webhooks to TO=http://localhost:… while `make dev` runs
	@$(BIN)/python -m sandbox listen --forward-to "$(TO)"

trigger: $(RUN) ## make EVENT=completed, expired, canceled or ping happen while `make dev` runs
	@$(BIN)/python -m sandbox trigger "$(EVENT)"

test: $(STAGES) ## ⭐ run all tests

unit: setup ## run the unit tests, then check that IAM policies match the AWS calls they made
	@$(BIN)/python -m tests.aws_calls --forget
	$(BIN)/python $(UNIT) $(T)
	$(if $(filter tests,$(T)),@$(BIN)/python -m tests.aws_calls)

endurance: setup ## run the tests that repeat one thing hundreds of times: races between threads, random worlds
	$(PYTEST) -n 2 -m endurance $(T) || [ $$? = 5 ]

cloud: setup ## run the tests that need the AWS emulator
	$(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder $(AGAIN) -m cloud $(T) || [ $$? = 5 ]

browser: setup ## run the tests in Chromium
	$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder $(AGAIN) -m "browser and not lighthouse" $(call in,browser) || [ $$? = 5 ]

lighthouse: setup ## have Lighthouse judge the hosted page in every state
	$(PYTEST) -m lighthouse -rP tests/browser

interop: export RECORDED_REQUESTS := $(REQUESTS)
interop: setup ## run the tests against the official Open Payments, Stripe and webhook packages (needs Node)
	$(PYTEST) -n 2 --dist loadfile -rP $(AGAIN) -m interop $(call in,interop) || [ $$? = 5 ]

coverage: export RECORD_REQUESTS := $(CURDIR)/.coverage.d/requests.jsonl
coverage: setup ## run the unit tests, and require 100 % of the core's branches, 95 % of other packages
	@rm -rf .coverage.d && mkdir .coverage.d && $(BIN)/python -m tests.aws_calls --forget
	$(BIN)/python $(UNIT) -p tests.interop.recorder $(UNTRACED)
	$(COVERAGE) run $(UNIT) -p tests.interop.recorder tests $(addprefix --ignore=,$(UNTRACED))
	@$(BIN)/python -m tests.aws_calls && $(COVERAGE) combine --quiet && $(COVERAGE) report --include="$(CORE)" --fail-under=100 && $(COVERAGE) report --include="layers/*,functions/*" --omit="$(CORE)" --fail-under=95

screenshots: setup ## take screenshots of the hosted page in every state, into screenshots/: phone, desktop, dark, Arabic; and the README's
	$(BIN)/python -m tests.browser.screenshots && $(BIN)/python -m tests.browser.readme_pictures

simulate: setup ## simulate WORLDS= worlds from SEED=: customers, merchants and sweeps under faults, checked at each step
	$(BIN)/python -m tests.simulation --worlds $(or $(WORLDS),1000) $(if $(SEED),--seed $(SEED))

soak: setup ## simulate EVENTS= webhook events over days of retries, checked at each step
	$(BIN)/python -m tests.simulation --soak $(or $(EVENTS),10000) $(if $(SEED),--seed $(SEED))

simulate-load: setup ## simulate a day of 1 000 abandoned sessions a minute, MINUTES= of it, while payments lose their answers
	$(BIN)/python -m tests.simulation.load $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

simulate-mutants: setup ## break the payment protocol one line at a time and show which check notices
	$(BIN)/python -m tests.simulation --mutants

fuzz: setup ## send REQUESTS= fuzzed requests from SEED=: made of DOCUMENT= (both of docs/), or right ones changed
	$(BIN)/python -m tests.fuzzing --requests $(or $(REQUESTS),20000) $(if $(SEED),--seed $(SEED)) $(foreach each,$(DOCUMENT),--document $(each))

bench: setup ## count what checkouts cost on AWS, and what is full at which rate; wait for the money; time the CPU of warm events; time the first byte of a page; flood the gateway; hang wallets before an honest payment; count units beside a million sessions; submit 1 000 wallets at once; pay beside the official client (needs Node)
	@$(foreach each,$(BENCHMARKS),$(BIN)/python -m benchmarks.$(each) &&) true

bench-cold: setup rehearsal-build ## time the cold starts of the built functions beside a bare one, and print their memory (Linux only)
	@$(BIN)/python -m benchmarks.cold

lint: setup ## ⭐ check style, types, import directions and template.yaml
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/cfn-lint template.yaml operations/web-acl.yaml
	$(BIN)/mypy layers/common functions sandbox operations tests benchmarks
	$(BIN)/lint-imports

fmt: setup ## format the code and fix what can be fixed automatically
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

docs: setup ## regenerate the tables in the documentation, docs/openapi.json and docs/openapi-v1.json
	$(BIN)/python docs/tables.py
	$(BIN)/python -m api.openapi > docs/openapi.json && $(BIN)/python -m api.v1.openapi > docs/openapi-v1.json

check: lint test ## ⭐ run lint, then all tests

lock: .venv/lock/stamp ## update the hashed requirements files from pyproject.toml
	$(UV) --group dev -o requirements-dev.txt && $(UV) --group run -c requirements-dev.txt -o requirements.txt
	$(UV) --group cloud -o sandbox/cloud-requirements.txt && $(UV) --group rehearsal -c sandbox/cloud-requirements.txt -o sandbox/rehearsal-requirements.txt && $(UV) --group sam -o sandbox/sam-requirements.txt
	$(UV) --group layer -c requirements-dev.txt -o layers/common/requirements.txt && $(UV) --group pay -c requirements-dev.txt -o layers/pay/requirements.txt

package: $(RUN) ## build the Python package (wheel and source) into dist/
	$(BIN)/python -m hatchling build -d dist

merchant: $(RUN) ## create a merchant: NAME= WALLET= KEY_ID= PRIVATE_KEY= (in the local world, unless DATABASE_URL is set)
	@[ -n "$$DATABASE_URL" ] || . $(WORLD_ENV); $(BIN)/checkout setup --name "$$NAME" --wallet-address "$$WALLET" --key-id "$$KEY_ID" --private-key "$$PRIVATE_KEY"

build: .venv-sam/stamp ## build what is deployed, into .aws-sam/build (STAGE= of samconfig.toml; needs Python 3.13)
	$(SAM) validate --lint --config-env $(STAGE)
	$(SAM) build --config-env $(STAGE) && .venv-sam/bin/python -m sandbox.artifacts .aws-sam/build

preflight: .venv/run-stamp ## check that your AWS account is ready for STAGE= of samconfig.toml
	@$(BIN)/python -m operations.preflight $(STAGE)

deploy: preflight build ## check the account, build, deploy STAGE= of samconfig.toml, and protect it from deletion
	@$(BIN)/python -m operations.deploy $(STAGE)

remove: .venv/run-stamp ## delete STAGE= with its data, which must have DeletionProtection=false
	@$(BIN)/python -m operations.remove $(STAGE)

artifacts: setup build rehearsal-build ## build for both processors, then test the built functions under Lambda's own runtime client
	$(PYTEST) -rP -m artifacts $(call in,artifacts)

rehearsal-build: .venv-sam/stamp ## build for this machine's processor, into .aws-sam/rehearsal
	$(SAM) build --build-dir .aws-sam/rehearsal --parameter-overrides Arch=$(subst aarch64,arm64,$(shell uname -m)) && .venv-sam/bin/python -m sandbox.artifacts .aws-sam/rehearsal

rehearse: setup .venv-rehearsal/stamp rehearsal-build ## deploy two stages into the AWS emulator, sell, upgrade, roll back, remove (Linux only)
	$(BIN)/python -m sandbox.rehearsal

restore-drill: $(RUN) ## restore all tables of DATABASE_URL beside the running ones, read them, delete them (KEEP=1 keeps them)
	@$(BIN)/python -m operations.restore drill $(if $(KEEP),--keep)

proving-day: .venv/run-stamp ## list what only a real account can show; with ACCOUNT= (and STEP=) do it there
	@$(BIN)/python -m operations.proving_day $(if $(ACCOUNT),--account $(ACCOUNT)) $(STEP)

released-tables: .venv/run-stamp ## record the tables of template.yaml as those of the last release
	@$(BIN)/python -m operations.schema --write

logs: .venv-sam/stamp ## follow the deployed logs of FN=api, pay, dashboard, webhook_sender or expirer of STAGE=
	@stack=$$(sed -n '/^\[$(STAGE).global/,/^$$/s/^stack_name = "\(.*\)"/\1/p' samconfig.toml) && $(SAM) logs --tail --cw-log-group "/$$stack/$(or $(FN),api)"

clean: ## delete the local world's data, builds and caches
	rm -rf dist .sandbox .aws-sam .aws-calls .coverage.d .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

.venv/run-stamp: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	@echo "First run: installing the shop and the checkout into .venv (40 MB to download, about 30 seconds) …"
	@$(PYTHON) -m venv .venv && .venv/$(PIP) -r $< && $(BIN)/python -m pip $(PIP_INSTALL) --no-deps --no-build-isolation --editable . && touch $@

.venv-cloud/stamp: sandbox/cloud-requirements.txt | .venv/run-stamp
	@echo "First run: installing the AWS emulator into .venv-cloud (20 MB to download, about 10 seconds) …"
	@$(PYTHON) -m venv --without-pip .venv-cloud && $(BIN)/python -m pip --python .venv-cloud/bin/python $(PIP_INSTALL) --require-hashes -r $< && touch $@

.venv/stamp: requirements-dev.txt | .venv/run-stamp
	@echo "First run: installing the developers' tools into .venv (120 MB to download, about a minute) …"
	@.venv/$(PIP) -r $< && touch $@

.venv-rehearsal/stamp: sandbox/rehearsal-requirements.txt .venv-sam/stamp
	@echo "First run: installing the AWS emulator for the rehearsal into .venv-rehearsal …"
	@.venv-sam/bin/python -m venv .venv-rehearsal && .venv-rehearsal/$(PIP) -r $< && touch $@

.venv-sam/stamp: sandbox/sam-requirements.txt
	@[ -n "$(PYTHON313)" ] || { echo "Python 3.13, which the functions run on, is needed on the PATH, or: make PYTHON313=/path/to/python3.13 …" >&2; exit 1; }
	@echo "First run: installing AWS SAM into .venv-sam …"
	@$(PYTHON313) -m venv .venv-sam && .venv-sam/$(PIP) -r $< && touch $@

.venv/lock/stamp: .venv/stamp
	$(PYTHON) -m venv .venv/lock && .venv/lock/bin/python -m pip $(PIP_INSTALL) uv==0.13.8 && touch $@
