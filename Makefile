# Two commands for a newcomer: `make demo` and `make test`. Everything else is for those who stay.
VENV   ?= .venv
PYTHON ?= python3
PIP     = $(VENV)/bin/python -m pip --disable-pip-version-check --quiet

AGENTS  = .agents

.PHONY: help demo needs test test-fast agents test-agents test-agents-few record-agents picture-agents faults faults-long patroni mutants lint format docs bench bench-long clean

help:
	@echo "make demo         show jobs that run, fail, wait, get lost and are taken over, on your terminal"
	@echo "make test         install what the tests need and run all tests"
	@echo "make test-fast    run the tests for daily work, in about a minute: unit, memory and SQLite conformance, command line"
	@echo "make test-agents  install the real coding agents and run them against a scripted model (test-agents-few: in minutes)"
	@echo "make faults       kill processes, cut the power, fill the disk: more than the tests do (faults-long: for hours)"
	@echo "make mutants      put known faults into a copy and check that a test catches each"
	@echo "make lint         run ruff, mypy and the import contracts"
	@echo "make docs         write the generated parts of README.md and docs/reference.md"
	@echo "make bench        measure, and write docs/performance.md (bench-long: up to 1,000,000 jobs)"

# Without its ensurepip python3 leaves an environment that has a python and no pip; so pip is what says that it is whole.
$(VENV)/bin/pip:
	@$(PYTHON) -m venv $(VENV) >/dev/null || { echo "mam needs Python 3.11 or newer with its venv module: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.demo: $(VENV)/bin/pip pyproject.toml constraints.txt
	@echo "installing mam into $(VENV) …"
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/pip pyproject.toml constraints.txt
	@echo "installing mam and its tools into $(VENV) …"
	@$(PIP) install --constraint constraints.txt --editable ".[dev]"
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	@$(VENV)/bin/mam demo

needs:
	@$(PYTHON) tools/needs.py

test: $(VENV)/.dev needs
	$(VENV)/bin/python -m pytest -n auto $(ARGS)

FAST = tests/unit tests/cli tests/conformance/test_memory.py tests/conformance/test_sqlite.py

test-fast: $(VENV)/.dev
	$(VENV)/bin/python -m pytest -n auto -m "not external and not slow" $(FAST) $(ARGS)

agents:
	@$(PYTHON) -m tests.real_agents.install $(AGENTS)

# The agents can reach nothing but loopback, whatever they try: no account, no update, no report.
ALONE = $(VENV)/bin/python -m tests.real_agents.alone $(VENV)/bin/python -m
# They wait most of the time, so run one process more than there are cores.
BESIDE = -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal

test-agents: $(VENV)/.dev agents needs
	$(ALONE) pytest tests/real_agents $(BESIDE) $(ARGS)

test-agents-few: $(VENV)/.dev agents
	$(ALONE) pytest tests/real_agents -m few $(BESIDE) $(ARGS)

record-agents: $(VENV)/.dev agents
	$(ALONE) tests.real_agents.record

picture-agents: $(VENV)/.dev agents
	$(ALONE) tests.real_agents.picture

faults: $(VENV)/.dev needs
	MAM_FAULTS=$${MAM_FAULTS:-3} $(VENV)/bin/python -m pytest -n auto tests/faults tests/postgres/test_kills.py tests/unit/test_model.py

faults-long: $(VENV)/.dev needs
	$(VENV)/bin/python -m tests.faults.long

# Not in tools/needs.py: Debian starts etcd as a service that stays. Install it where you want that.
patroni: $(VENV)/.dev
	@command -v patroni >/dev/null && command -v etcd >/dev/null || { echo "needs Patroni and etcd: apt-get install patroni etcd-server" >&2; exit 1; }
	MAM_PATRONI=1 $(VENV)/bin/python -m pytest tests/postgres/test_patroni.py

mutants: $(VENV)/.dev needs
	$(VENV)/bin/python -m tests.faults.mutants

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

format: $(VENV)/.dev
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs: $(VENV)/.dev
	$(VENV)/bin/python -m tools.docs

bench: $(VENV)/.dev
	$(VENV)/bin/python -m tools.bench

bench-long: $(VENV)/.dev
	$(VENV)/bin/python -m tools.bench --long

clean:
	rm -rf $(VENV) $(AGENTS) .bench .faults .mypy_cache .ruff_cache .pytest_cache
