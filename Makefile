# Two commands matter: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: demo test test-faults lint bench setup clean
setup: .venv/ready

.venv/ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv || python3 -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m federated_anon.warmup
	touch $@

demo: setup
	rm -rf demo-run
	$(BIN)/federated-anon demo --out demo-run

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-faults: setup
	$(BIN)/python -m pytest -m "faults or not faults" tests/test_faults.py tests/test_memory.py -v

bench: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]' || echo "some peers are missing: their rows are skipped"
	for table in benchmarks/bench_*.py; do $(BIN)/python $$table || exit 1; done

clean:
	rm -rf .venv build dist *.egg-info
