# SPDX-License-Identifier: Apache-2.0
# make setup · make demo · make test · make bench: each does what it needs first, and asks nothing.
.PHONY: setup demo test lint bench lock clean

PY := .venv/bin/python

setup:
	@scripts/setup.sh run

demo: setup
	@# 3: the run is whole, and says of some result that it is INVALID or UNRESOLVABLE on this machine.
	@$(PY) -m espbench run plans/quick.yaml || [ $$? -eq 3 ]

test:
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory lint
	cargo test --release --locked --quiet --manifest-path traffic/Cargo.toml
	$(PY) -m pytest

lint:
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	cargo fmt --check --manifest-path traffic/Cargo.toml
	cargo clippy --release --locked --quiet --all-targets --manifest-path traffic/Cargo.toml -- -D warnings

bench:
	@scripts/setup.sh test
	$(PY) benchmarks/generator.py
	$(PY) benchmarks/esp_peer.py
	$(PY) benchmarks/search_cost.py
	$(PY) benchmarks/comparison.py
	$(PY) benchmarks/large_run.py
	$(PY) benchmarks/setup_times.py
	$(PY) benchmarks/virtual_time.py

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --extra dev --extra lab --extra build pyproject.toml -o requirements.lock

clean:
	@$(PY) -m espbench clean
