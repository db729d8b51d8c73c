# `make` alone says what there is. Needs only Python >= 3.11; everything else goes into .venv, pinned by hash.

PORT ?= 8080
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
# The newest Python that will do; `make PYTHON=/path/to/python3` chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)

# Containers often set it; then each of dozens of processes compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run demo cli test referee soak bench weight faults restore generators rolling failover cluster lint types verify protos docs lock browser clean runs develops nodes port

help: ## what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /make \1\t/' | expand -t 14

run: port runs ## start the whole stack here: make run [PORT=8080] [FIATGATE_HOME=.fiatgate]; Ctrl-C stops it
	@exec $(BIN)/python -I -S deploy/local/child.py TERM $(BIN)/python -m deploy.local run --port $(PORT)

demo: runs ## one whole purchase against the running stack, each step printed
	@exec $(BIN)/fiatgate demo $(ARGS)

cli: runs ## the operator's command: make cli ARGS="deals list"
	@exec $(BIN)/fiatgate $(ARGS)

test: develops lint types verify browser ## everything that CI runs: lint, types, verify, tests
	$(BIN)/pytest $(or $(ARGS),-n 2)

soak: develops ## the tests that take long or need more programs, which it installs: restore, upgrade, Prometheus, PHP
	@sh tools/install-programs.sh prometheus:prometheus php:php-cli node:nodejs go:golang-go javac:default-jdk-headless
	$(BIN)/pytest -m soak $(ARGS)

referee: develops ## compare what users see of a day with the recording: ARGS=--update replaces it
	@exec $(BIN)/python -m tests.referee compare $(ARGS)

bench: develops ## the measurements of benchmarks/, with their limits
	$(BIN)/python -m benchmarks $(ARGS)

weight: ## how much there is to read, beside its limits
	@$(PYTHON) tools/weight.py

faults: develops ## kill, stop and cut off processes under load, read the books: ARGS="--seed 1 --rounds 20"
	@exec $(BIN)/python -m tests.faults $(ARGS)

restore: develops ## back up under load, lose a disk, rows or a database, restore, verify: ARGS="--losses disk"
	@exec $(BIN)/python -m tests.restore $(ARGS)

generators: develops ## clients of nine generators of others, made and run: ARGS="java ogen"
	@exec $(BIN)/python -m tests.generators $(ARGS)

rolling: develops ## replace every process under 200 requests a second, as Kubernetes does: ARGS="--rounds 3"
	@exec $(BIN)/python -m tests.rolling $(ARGS)

failover: nodes ## three PostgreSQL nodes that lose their primary under load: ARGS="both frozen"
	@exec $(BIN)/python -m tests.failover $(ARGS)

cluster: develops ## the same and killed databases on the cluster of kubectl: ARGS="registry.example.com/fiatgate:1"
	@exec $(BIN)/python -m tests.cluster $(ARGS)

lint: develops ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: develops ## mypy, strict
	$(BIN)/mypy .

verify: develops ## the protos keep their style, and fiatgate/ is what they give
	$(BIN)/python tools/protolint.py
	$(BIN)/python tools/protos.py --check

protos: develops ## generate fiatgate/ from protos/
	$(BIN)/python tools/protos.py

docs: develops ## write what comes from elsewhere: parts of docs/, alert rules, services' manifests
	$(BIN)/python tools/docs.py
	$(BIN)/python -m tests.support.schemas
	$(BIN)/python -m tests.security.attacks
	$(BIN)/python tools/rules.py
	$(BIN)/python tools/manifests.py

lock: develops ## choose versions anew: of the image, of make run, of make test, of make failover
	$(COMPILE) pyproject.toml --output-file requirements.lock
	$(COMPILE) pyproject.toml --extra local --constraint requirements.lock --output-file requirements-local.lock
	$(COMPILE) pyproject.toml --extra local --extra dev --constraint requirements-local.lock --output-file requirements-dev.lock
	$(COMPILE) --group failover --constraint requirements-dev.lock --output-file requirements-failover.lock

browser: ## a browser for the tests of the customer's page, unless one is here
	@command -v google-chrome >/dev/null || sh tools/install-programs.sh chromium:chromium

clean: ## remove .venv and caches; .fiatgate/ (your data) stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

COMPILE = $(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command 'make lock' --no-emit-index-url --no-annotate --quiet

# Both print nothing when all is there. An environment of another Python or folder, or half of one, is made anew.
runs develops nodes:
	@test -n "$(PYTHON)" || { echo 'Fiatgate needs Python 3.11 or newer: make PYTHON=/path/to/python3'; exit 1; }
	@$(PYTHON) tools/environment.py $@

port:
	@$(if $(shell test "$(PORT)" -ge 1 -a "$(PORT)" -le 65535 2>/dev/null || echo no),$(error PORT=$(PORT) is no port: give a number from 1 to 65535)):
