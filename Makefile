# Needs Python 3.11 or newer, make and git; everything else is installed into this folder.
# T=path limits the tests to one folder or file.
PYTHON ?= python3
T ?= tests packages/open-payments/tests
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# The folder that has all tests of a marker, so that the others need not be collected.
in = $(if $(filter tests,$(T)),tests/$(1),$(T))
# In CI, a test with processes of its own runs once more if it ran into a time limit, and only then.
AGAIN := $(if $(CI),--reruns 1 --only-rerun "[Tt]imeout|timed out")
ALONE := not endurance and not cloud and not browser and not interop and not lighthouse and not artifacts
# Python compiles the modules that are imported, as they are: of all that is installed, few.
PIP_INSTALL := install --quiet --no-compile --disable-pip-version-check
PIP := bin/python -m pip $(PIP_INSTALL) --require-hashes
# Enough to run the local world. Packages for developers only (.venv/stamp) go into the same .venv
# later.
RUN := .venv/run-stamp .venv-cloud/stamp
WORLD_ENV := $(abspath $(or $(SANDBOX_STATE),.sandbox)/$(or $(SANDBOX_PORT),4000)/env)
# `sam build` needs the Python version that the functions run on; .venv-sam is made with it.
PYTHON313 ?= $(firstword $(shell for p in python3.13 $$HOME/.pyenv/versions/3.13.*/bin/python3.13; \
	do "$$p" -c '' 2>/dev/null && echo "$$p"; done))
SAM := SAM_CLI_TELEMETRY=0 PATH="$(CURDIR)/.venv-sam/bin:$$PATH" .venv-sam/bin/sam
STAGE ?= default
# Of `make bench`. The commit set has those that count; what the others time means nothing beside other work.
BENCHMARKS ?= cost callback cpu scaling neighbours hanging page growth burst stock official
# The steps of `make check` and of `make deep`, in the order in which they run one after another.
COMMIT := lint unit stores smoke simulate-mutants worlds requests counts
DEEP := lint coverage endurance cloud browser lighthouse interop pretix artifacts rehearse simulate-mutants \
	fresh-worlds soak fuzz counts ratios
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
export NAME WALLET KEY_ID PRIVATE_KEY MERCHANT

.PHONY: help
help:
	@awk -f bin/help.awk Makefile

##@ ⭐ Every day
.PHONY: dev test lint check deep

dev: $(RUN) ## run the local world: demo shop, checkout, wallets; no account needed. Ctrl-C stops it
	@$(BIN)/python -m sandbox dev

test: $(filter-out lint,$(COMMIT)) ## run the tests of the commit set

lint: setup ## check style, types, import directions, spelling, template.yaml and the workflows
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/cfn-lint template.yaml operations/*.yaml
	$(BIN)/mypy layers/common functions sandbox operations tests benchmarks docs/openapi \
		packages/open-payments/tests packages/open-payments/examples && \
		cd plugins/pretix && ../../$(BIN)/mypy pretix_checkout_sessions
	$(BIN)/lint-imports && $(BIN)/zizmor --offline --quiet .github && $(BIN)/codespell

check: lint test ## run lint, then the tests of the commit set: what each commit must pass

deep: ## run everything: coverage, kills, all browser and interop tests, builds, fresh worlds
	@.ci/run deep

##@ Local world
.PHONY: demo listen trigger merchant invite

demo: $(RUN) ## buy something from the command line and print each step (WALLET=https://… pays, REFUND=5.00 goes back)
	@$(BIN)/python -m sandbox demo $(if $(WALLET),--wallet "$$WALLET") $(if $(REFUND),--refund "$$REFUND")

listen: $(RUN) ## forward the shop's webhooks to TO=http://localhost:…, of `make dev` or of a deployment AT=https://…
	@$(BIN)/python -m sandbox listen --forward-to "$(TO)" $(if $(AT),--at "$(AT)") $(if $(FORM),--form "$(FORM)")

trigger: $(RUN) ## make EVENT=completed, expired, canceled, refund or ping happen, there too (AT=https://…)
	@$(BIN)/python -m sandbox trigger "$(EVENT)" $(if $(AT),--at "$(AT)") $(if $(WALLET),--wallet "$$WALLET")

merchant: $(RUN) ## create a merchant, here or in DATABASE_URL: WALLET=, or also NAME= KEY_ID= PRIVATE_KEY=
	@[ -n "$$DATABASE_URL" ] || . $(WORLD_ENV); $(BIN)/checkout setup --name "$$NAME" \
		--wallet-address "$$WALLET" --key-id "$$KEY_ID" --private-key "$$PRIVATE_KEY" --by-make

invite: $(RUN) ## make a link with which NAME= signs in to the shop MERCHANT=mer_…, or signs up
	@[ -n "$$DATABASE_URL" ] || . $(WORLD_ENV); $(BIN)/checkout invite --name "$$NAME" \
	  $(if $(MERCHANT),--merchant "$$MERCHANT",--new-shop)

##@ Tests (T=path runs some of them)
.PHONY: unit stores smoke coverage endurance cloud browser interop pretix lighthouse artifacts rehearse

unit: setup ## run the unit tests, then check that IAM policies match the AWS calls they made
	@$(BIN)/python -m tests.support.aws_calls --forget
	@echo "Both processes collect the tests first, which takes about 20 seconds …"
	$(PYTEST) -n 2 --dist worksteal -m "$(ALONE)" $(T)
	$(if $(filter tests,$(T)),@$(BIN)/python -m tests.support.aws_calls)

stores: setup ## run the tests of the stores on the AWS emulator
	$(PYTEST) -n 2 --dist loadfile $(AGAIN) -m "cloud and not endurance" $(call in,adapters) $(call in,fakes)

smoke: setup ## buy once in Chromium, look at each page, and ask the official client and Stripe's (needs Node)
	$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder $(AGAIN) -m smoke $(call in,browser) $(call in,interop)

coverage: setup ## run the unit tests, and require 100 % of the core's branches, 95 % of other packages
	@bin/coverage "$(ALONE)"

endurance: setup ## run the tests that repeat one thing hundreds of times
	$(PYTEST) -n 2 -m endurance $(T) || [ $$? = 5 ]

cloud: setup ## run the tests that need the AWS emulator
	$(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder $(AGAIN) -m cloud $(T) || [ $$? = 5 ]

browser: setup ## run the tests in Chromium
	$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder $(AGAIN) -m "browser and not lighthouse" \
		$(call in,browser) || [ $$? = 5 ]

interop: export RECORDED_REQUESTS := $(REQUESTS)
interop: setup ## run the tests against others' Open Payments, Stripe and webhook packages (needs Node)
	$(PYTEST) -n 2 --dist loadfile -rP $(AGAIN) -m interop $(call in,interop) || [ $$? = 5 ]

pretix: .venv-pretix/stamp $(RUN) ## test the plugin for pretix in a pretix of its own (600 MB)
	cd plugins/pretix && env -u PYTHONPATH -u PYTEST_ADDOPTS ../../.venv-pretix/bin/python -m pytest -n 2 --dist loadfile \
		$(if $(filter tests,$(T)),,../../$(T))

lighthouse: setup ## have Lighthouse judge the hosted page in every state
	$(PYTEST) -m lighthouse -rP tests/browser

artifacts: setup build rehearsal-build ## test what was built, under Lambda's own runtime client
	$(PYTEST) -rP -m artifacts $(call in,artifacts)

rehearse: setup .venv-rehearsal/stamp rehearsal-build ## deploy, sell, upgrade and remove in the AWS emulator (Linux)
	$(BIN)/python -m sandbox.rehearsal

##@ Simulation (SEED=number repeats a run)
.PHONY: simulate simulate-mutants worlds fresh-worlds simulate-load soak fuzz requests

simulate: setup ## simulate WORLDS= worlds of customers, merchants and sweeps under faults (RELEASES=1: of two)
	$(BIN)/python -m tests.simulation --worlds $(or $(WORLDS),1000) $(if $(SEED),--seed $(SEED)) \
		$(if $(RELEASES),--releases)

worlds: setup ## simulate the same 300 worlds each time, and 100 new ones
	$(BIN)/python -m tests.simulation --worlds 300 --seed 1
	$(BIN)/python -m tests.simulation --worlds 100

fresh-worlds: setup ## simulate thousands of new worlds, also with the last release beside this one
	$(BIN)/python -m tests.simulation --worlds $(or $(WORLDS),3000)
	$(BIN)/python -m tests.simulation --worlds 500 --releases

simulate-mutants: setup ## break the payment protocol one line at a time and show which check notices (LEARN=1)
	$(BIN)/python -m tests.simulation --mutants $(if $(LEARN),--learn)

simulate-load: setup ## simulate MINUTES= of a day of 1 000 abandoned sessions a minute
	$(BIN)/python -m tests.simulation.load $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

soak: setup ## simulate EVENTS= webhook events over days of retries
	$(BIN)/python -m tests.simulation --soak $(or $(EVENTS),10000) $(if $(SEED),--seed $(SEED))

fuzz: setup ## send REQUESTS= fuzzed requests, made of DOCUMENT= (docs/openapi.json and docs/openapi-v1.json)
	$(BIN)/python -m tests.fuzzing --requests $(or $(REQUESTS),20000) $(if $(SEED),--seed $(SEED)) \
		$(foreach each,$(DOCUMENT),--document $(each))

requests: setup ## send the same 500 fuzzed requests each time, and 250 new ones
	$(BIN)/python -m tests.fuzzing --requests 500 --seed 1
	$(BIN)/python -m tests.fuzzing --requests 250

##@ Benchmarks
.PHONY: bench bench-cold bench-memory counts ratios

bench: setup ## run the BENCHMARKS= of docs/performance.md, by default all (needs Node)
	@$(foreach each,$(BENCHMARKS),$(BIN)/python -m benchmarks.$(each) &&) true

bench-cold: setup rehearsal-build ## time the cold starts of the built functions, and print their memory (Linux)
	@$(BIN)/python -m benchmarks.cold

bench-memory: setup rehearsal-build ## time the customer's steps with the memory that a function could have (Linux, root)
	@$(BIN)/python -m benchmarks.memory

counts: setup ## count what a checkout costs and how many the service can take
	@$(BIN)/python -m benchmarks.cost && $(BIN)/python -m benchmarks.scaling

ratios: setup rehearsal-build ## compare CPU and cold starts with their bounds; nothing else may run (WRITE=1)
	@$(BIN)/python -m benchmarks.ratios $(if $(WRITE),--write)

##@ Code
.PHONY: setup fmt docs screenshots lock package clean

setup: .venv/stamp .venv-cloud/stamp ## install what developers need into this folder; other targets run it

fmt: setup ## format the code and fix what can be fixed automatically
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

docs: setup ## regenerate the tables in the documentation and the two OpenAPI documents
	$(BIN)/python docs/tables.py
	$(BIN)/python -m docs.openapi

screenshots: setup ## take the README's pictures, and screenshots of the hosted page in every state
	$(BIN)/python -m tests.browser.screenshots && $(BIN)/python -m tests.browser.readme_pictures

lock: .venv/lock/stamp ## update the hashed requirements files from pyproject.toml
	bin/lock

package: $(RUN) ## build the Python package (wheel and source) into dist/
	$(BIN)/python -m hatchling build -d dist

clean: ## delete the local world's data, builds and caches
	rm -rf dist .sandbox .aws-sam .aws-calls .ci-logs .coverage.d .hypothesis
	rm -rf .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

##@ Deployment (STAGE=name in samconfig.toml)
.PHONY: preflight build rehearsal-build wallets-build deploy undo stop start remove logs restore-drill proving-day
.PHONY: released-tables released-records

preflight: .venv/run-stamp ## check that your AWS account is ready for the stage
	@$(BIN)/python -m operations.preflight $(STAGE)

build: .venv-sam/stamp wallets-build ## build what is deployed, into .aws-sam/build (needs Python 3.13)
	$(SAM) validate --lint --config-env $(STAGE)
	$(SAM) build --config-env $(STAGE) && .venv-sam/bin/python -m sandbox.artifacts .aws-sam/build

rehearsal-build: .venv-sam/stamp wallets-build ## build for this machine's processor, into .aws-sam/rehearsal
	$(SAM) build --build-dir .aws-sam/rehearsal \
		--parameter-overrides Arch=$(subst aarch64,arm64,$(shell uname -m))
	.venv-sam/bin/python -m sandbox.artifacts .aws-sam/rehearsal

wallets-build: .venv-sam/stamp ## build the wallets of a test stage, into .aws-sam/test-wallets
	$(SAM) build --template-file operations/test-wallets.yaml --build-dir .aws-sam/test-wallets
	.venv-sam/bin/python -m sandbox.artifacts .aws-sam/test-wallets

deploy: preflight build ## check the account, build, deploy the stage, and protect it from deletion
	@$(BIN)/python -m operations.deploy $(STAGE)

undo: .venv/run-stamp ## move all functions of the stage back to the release before the last deployment
	@$(BIN)/python -m operations.versions $(STAGE)

stop: .venv/run-stamp ## stop the stage, for a restore: no function runs, and messages wait in their queues
	@$(BIN)/python -m operations.pause stop $(STAGE)

start: .venv/run-stamp ## start the stage again, as it was before `make stop` (REFUNDS=held after a restore)
	@$(BIN)/python -m operations.pause start $(STAGE) $(if $(REFUNDS),--refunds $(REFUNDS))

remove: .venv/run-stamp ## delete the stage with its data; it must have DeletionProtection=false
	@$(BIN)/python -m operations.remove $(STAGE)

logs: .venv-sam/stamp ## follow the logs of FN=api, pay, dashboard, webhook_sender or expirer
	@bin/logs $(STAGE) $(or $(FN),api)

restore-drill: $(RUN) ## restore the tables of DATABASE_URL under other names, and delete them (KEEP=1 keeps them)
	@$(BIN)/python -m operations.restore drill $(if $(KEEP),--keep)

proving-day: .venv/run-stamp ## list what only a real account can show; ACCOUNT= (and STEP=) does it there
	@$(BIN)/python -m operations.proving_day $(if $(ACCOUNT),--account $(ACCOUNT)) $(STEP)

released-tables: .venv/run-stamp ## record the tables of template.yaml as those of the last release
	@$(BIN)/python -m operations.schema --write

released-records: .venv/run-stamp ## record how today's code stores records, and its reader, as the last release's
	@$(BIN)/python -m tests.released

# Installations, each done once; a changed requirements file installs it again.
.venv/run-stamp: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	@echo "First run: installing the shop and the checkout into .venv (40 MB to download, about 30 seconds) …"
	@$(PYTHON) -m venv .venv && .venv/$(PIP) -r $< && \
		$(BIN)/python -m pip $(PIP_INSTALL) --no-deps --no-build-isolation \
			--editable packages/open-payments --editable . && touch $@

.venv-cloud/stamp: sandbox/cloud-requirements.txt | .venv/run-stamp
	@echo "First run: installing the AWS emulator into .venv-cloud (20 MB to download, about 10 seconds) …"
	@$(PYTHON) -m venv --without-pip .venv-cloud && $(BIN)/python -m pip --python .venv-cloud/bin/python \
		$(PIP_INSTALL) --require-hashes -r $< && touch $@

.venv/stamp: requirements-dev.txt | .venv/run-stamp
	@echo "First run: installing the developers' tools into .venv (120 MB to download, about a minute) …"
	@.venv/$(PIP) -r $< && touch $@

.venv-pretix/stamp: plugins/pretix/requirements.txt plugins/pretix/pyproject.toml
	@echo "First run: installing pretix into .venv-pretix (200 MB to download, about two minutes) …"
	@$(PYTHON) -m venv .venv-pretix && .venv-pretix/$(PIP) -r $<
	@.venv-pretix/bin/python -m pip $(PIP_INSTALL) --no-deps --no-build-isolation \
		--editable plugins/pretix && touch $@

.venv-rehearsal/stamp: sandbox/rehearsal-requirements.txt .venv-sam/stamp
	@echo "First run: installing the AWS emulator for the rehearsal into .venv-rehearsal …"
	@.venv-sam/bin/python -m venv .venv-rehearsal && .venv-rehearsal/$(PIP) -r $< && touch $@

.venv-sam/stamp: sandbox/sam-requirements.txt
	@[ -n "$(PYTHON313)" ] || { echo "Python 3.13, which the functions run on, must be on the PATH; or name it:" \
		"make PYTHON313=/path/to/python3.13 …" >&2; exit 1; }
	@echo "First run: installing AWS SAM into .venv-sam …"
	@$(PYTHON313) -m venv .venv-sam && .venv-sam/$(PIP) -r $< && touch $@

.venv/lock/stamp: .venv/stamp
	$(PYTHON) -m venv .venv/lock && .venv/lock/bin/python -m pip $(PIP_INSTALL) uv==0.13.8 && touch $@
