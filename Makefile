# gpufleet.dra: `make demo` runs the main job on this machine, `make test` the tests. Each installs what it needs.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# root may come without these, as after `su`
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

BIN := .build/venv/bin
PYTEST := $(BIN)/pytest -m "not slow"
MOLECULE := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m sandbox.environment molecule molecule test
# What of molecule/ runs in make test.
SCENARIOS := mig_geometry_change driver_install
# Extra arguments: for ansible-playbook in `make demo` (ARGS="--check --diff"), for the programs of `make bench` and `make hardware-check`.
ARGS ?=

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 16

.PHONY: env
env: ## Make the private Python environment and lay out the collection under .build
	@sh scripts/bootstrap.sh

.PHONY: demo
demo: env ## Start the sandbox (four GPU nodes), run site.yml against it, show the verdict
	@$(BIN)/python -m sandbox.demo $(ARGS)

.PHONY: demo-down
demo-down: env ## Remove everything that the sandbox started
	@$(BIN)/python -m sandbox down

.PHONY: lint
lint: env ## ruff, mypy, yamllint, ansible-lint, generated files up to date
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/yamllint --strict .
	$(BIN)/ansible-lint
	$(BIN)/antsibull-changelog lint
	$(BIN)/python scripts/role_readmes.py --check
	$(BIN)/python scripts/troubleshooting.py --check
	$(BIN)/python scripts/driver_matrix.py --check

.PHONY: sanity
sanity: env ## ansible-test sanity over what the collection publishes
	$(BIN)/python scripts/sanity.py

.PHONY: unit
unit: env ## Pure logic and project rules
	$(PYTEST) -n 2 tests/unit

.PHONY: sandbox-test
sandbox-test: env host-packages ## The emulator and the sandbox's own parts
	$(PYTEST) -n 2 tests/emulator
	$(PYTEST) tests/sandbox

.PHONY: integration
integration: env host-packages ## Modules, roles and NVIDIA's plugin on a real cluster
	$(PYTEST) --durations=30 tests/integration

.PHONY: molecule
molecule: env host-packages ## Role scenarios on systemd hosts
	$(MOLECULE) $(SCENARIOS:%=--scenario-name %)

.PHONY: molecule-all
molecule-all: env host-packages ## The role scenarios that make molecule leaves to make test-all
	$(MOLECULE) --all $(SCENARIOS:%=--exclude %)

.PHONY: host-packages
host-packages: env
	@$(BIN)/python -m sandbox.artifacts --host-packages

.PHONY: test
test: lint sanity unit sandbox-test integration molecule ## Everything that CI runs

.PHONY: test-all
test-all: test molecule-all ## make test and what is long: every MIG layout against every other, faults at every NVML call, more failures and upgrades on a cluster
	$(BIN)/pytest -m slow tests/unit tests/emulator tests/integration

.PHONY: bench
bench: env ## What layout changes destroy, against the optimum; how long planning takes
	$(BIN)/python tests/bench/mig_transitions.py $(ARGS)

.PHONY: bench-roles
bench-roles: env host-packages ## How long the driver's and the runtime's role take when nothing is to be done, against as many pings
	$(BIN)/python tests/bench/roles_nochange.py $(ARGS)

.PHONY: hardware-check
hardware-check: env ## Read-only: what is read of this machine's GPUs, against nvidia-smi and the tables
	$(BIN)/python tests/hardware/check.py $(ARGS)

.PHONY: lock
lock: ## Renew the lock files (needs uv)
	uv pip compile --universal --python-version 3.12 --generate-hashes --no-header -q requirements/dev.in -o requirements/dev-py312.txt
	uv pip compile --python-version 3.11 --generate-hashes --no-header -q requirements/dev.in -o requirements/dev-py311.txt

.PHONY: clean
clean: ## Remove .build (the cache folder stays)
	rm -rf .build
