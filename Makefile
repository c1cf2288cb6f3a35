# handrail: one command for each thing you want to do. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := $(VENV)/ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long test-outside judges check format lint types contracts tidy pytest simulate docs manifests ui bench drill fleet soak lock clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: $(READY) ## make the environment in .venv from requirements.lock

$(READY): requirements.lock pyproject.toml
	@echo "==> making the environment in $(VENV) (once; about half a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "handrail needs Python 3.11 or newer; say PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@echo "==> installing what requirements.lock names, checked by hash"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## a one-minute tour, offline; leaves nothing behind
	@$(BIN)/handrail demo

test: $(READY) judges pytest ## set up everything and pass all tests, with coverage

test-outside: $(READY) judges ## only the judges from outside, none left out: conformance, Inspector, real clients
	@HANDRAIL_OUTSIDE=required $(BIN)/python tests/run.py tests/outside

test-long: $(READY) ## the tests that take minutes: many rounds of kill -9
	@$(BIN)/python -m pytest -m long -s -o faulthandler_timeout=1800 tests

judges: $(READY)
	@echo "==> installing the judges from outside into build/node (once; what can't be installed is left out, and said)"
	@$(BIN)/python tests/outside/nodejs.py || true

check: $(READY) lint types contracts judges pytest ## all that a commit must pass

format: $(READY) ## put the code into shape
	@$(BIN)/ruff format src tests bench docs
	@$(BIN)/ruff check --fix --quiet src tests bench docs

lint: $(READY)
	@echo "==> format and lint"
	@$(BIN)/ruff format --check --quiet src tests bench docs
	@$(BIN)/ruff check --quiet src tests bench docs

types: $(READY)
	@echo "==> types (mypy --strict)"
	@$(BIN)/mypy --no-error-summary

contracts: $(READY)
	@echo "==> import contracts"
	@$(BIN)/lint-imports --no-cache | tail -n 8

pytest: $(READY)
	@echo "==> tests, on every core, with branch coverage"
	@$(BIN)/python tests/run.py

tidy: $(READY) ## the house in figures, beside its yardstick
	@PYTHONPATH=tests $(BIN)/python tests/tidy/yardstick.py

simulate: $(READY) ## live N simulated days from SEED on (make simulate N=20000 SEED=0; FLEET=1: on several machines)
	@$(BIN)/python tests/simulation/run.py --seed $(or $(SEED),0) --count $(or $(N),2000) $(if $(FLEET),--fleet)

docs: $(READY) ## write docs/reference/ again from the code
	@$(BIN)/python docs/generate.py

manifests: $(READY) ## write docs/clients/ again from the code
	@$(BIN)/python docs/manifests.py

ui: $(READY) ## build the console from ui/ (installs Node and what it needs into build/)
	@cd tests && ../$(BIN)/python -m outside.console_build

bench: $(READY) ## measure the figures of bench/ (minutes)
	@$(BIN)/python bench/run.py

drill: $(READY) ## the disaster drill: back up, lose, restore, damage, salvage a home (EVENTS=2000)
	@$(BIN)/python tests/interfaces/backup_drill.py $(or $(EVENTS),2000)

fleet: $(READY) ## a drill: PostgreSQL, Temporal and 3 workers, one killed, one stopped, the database restarted (RUNS=120 HOST=temporal)
	@$(BIN)/python tests/interfaces/fleet_drill.py $(or $(RUNS),120) $(or $(HOST),temporal)

soak: $(READY) ## a mixed load with faults for MINUTES=30: a table of memory, descriptors, WAL and latency, and whether they are flat
	@nice -n 5 $(BIN)/python tests/interfaces/soak/run.py $(or $(MINUTES),30)

lock: $(READY) ## resolve requirements.lock again (needs uv)
	@uv pip compile pyproject.toml --group dev --group bench --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header --upgrade --quiet -o requirements.lock

clean: ## remove the environment and everything built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
