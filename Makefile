# SPDX-License-Identifier: Apache-2.0
# make setup · make demo · make check · make test · make test-all · make bench · make campaign · make dist · make deb · make lock ·
# make test-matrix: each does what it needs first, and asks nothing.
.PHONY: setup demo check test test-all rest rest-unit rest-beside rest-alone boards boards-strongswan without-boards beside-rest check-built static unit lint bench campaign dist deb test-matrix lock clean

# Else each of the hundreds of starts of Python in the tests compiles what it reads again.
unexport PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
CPUS := $(shell nproc)
# What minds no company comes first, two workers on each CPU, since many of its tests wait for guests and daemons; what
# measures in real time comes after it, alone. A file stays with one worker: its guests are booted once.
PARALLEL := (virtual_time or browser or untimed) and not alone
# What scripts/setup.sh installs must be here: a skip for its lack is a failure.
STRICT := --nothing-missing
# What fails there is tried once more, alone.
BESIDE = scripts/beside.sh $(PY) "$(1)" $(shell expr 2 \* $(CPUS)) $(STRICT) --durations=15
UNIT := $(PY) -m pytest -q tests/unit -n $(CPUS) --dist worksteal
TIMED := scripts/timed.sh
# The tests that were skipped, or run again, since the host stood still: the parts of one run have one limit of each
# (host_stalls.py).
export ESPBENCH_HOST_SKIPS := $(CURDIR)/build/host-skips
ALONE := $(PY) -m pytest tests/integration $(STRICT) --durations=25

setup:
	@scripts/setup.sh run

demo: setup
	@scripts/demo.sh

# What needs no root, no network and no boards once `setup` has run.
check: setup static unit

# Everything that proves the product on this machine; test-all: every other stack, option and fault as well.
# The boards are built (minutes, once) beside what measures nothing and needs none, at lower priority.
test:
	@rm -f "$(ESPBENCH_HOST_SKIPS)"
	@$(TIMED) "set-up" scripts/setup.sh test
	@$(TIMED) "boards, and what needs none" $(MAKE) --no-print-directory -j2 boards without-boards MORE=$(STRICT)
	@$(TIMED) "beside each other, with boards" $(call BESIDE,($(PARALLEL)) and boards and not slow)
	@$(TIMED) "alone" $(ALONE) -m "not ($(PARALLEL)) and not slow"

test-all: test
	@$(MAKE) --no-print-directory rest

# What `test` leaves out: all its parts, also if one fails.
rest:
	@rm -f "$(ESPBENCH_HOST_SKIPS)"
	@MAKE="$(MAKE)" scripts/parts.sh rest-unit rest-beside rest-alone

rest-unit:
	@$(TIMED) "unit, the rest" $(UNIT) -m "slow or hypothesis" --hypothesis-profile thorough $(STRICT)

# Programs that only one file of these tests needs are built (minutes, once) beside the others.
rest-beside:
	@$(MAKE) --no-print-directory -j2 boards-strongswan beside-rest

beside-rest:
	@$(TIMED) "beside each other, the rest" $(call BESIDE,($(PARALLEL)) and slow)

rest-alone:
	@$(TIMED) "alone, the rest" $(ALONE) -m "not ($(PARALLEL)) and slow"

boards:
	@# One command for both: most of QEMU is compiled once.
	@$(TIMED) "boards and x86" nice -n 5 .venv/bin/espbench build e500 x86

boards-strongswan:
	@$(TIMED) "strongSwan for boards" nice -n 5 .venv/bin/espbench build e500-strongswan

# Tests that wait for guests and daemons leave CPUs to the build of the boards, and need no figure.
without-boards: check-built
	@$(TIMED) "beside each other" $(call BESIDE,($(PARALLEL)) and not boards and not slow)

check-built:
	@$(TIMED) "static" $(MAKE) --no-print-directory static
	@$(TIMED) "unit" $(MAKE) --no-print-directory unit

static: lint
	cargo test --release --locked --quiet --workspace --manifest-path traffic/Cargo.toml

unit:
	$(UNIT) -m "not slow" $(MORE)

lint:
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	cargo fmt --all --check --manifest-path traffic/Cargo.toml
	cargo clippy --release --locked --quiet --workspace --all-targets --manifest-path traffic/Cargo.toml -- -D warnings

# benchmarks/README.md lists all benchmarks; those that are not here are run by hand.
bench:
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory boards
	$(PY) benchmarks/tester/generator.py
	$(PY) benchmarks/tester/esp_peer.py
	$(PY) benchmarks/judgement/search_cost.py
	$(PY) benchmarks/judgement/null_experiment.py
	@# The rule of before lets luck move a figure: the experiment must see it.
	$(PY) benchmarks/judgement/null_experiment.py --excuse-failures --must-be-red --dut hiccups --noise starvation
	$(PY) benchmarks/judgement/null_frame_loss.py
	$(PY) benchmarks/judgement/comparison.py
	$(PY) benchmarks/tester/large_run.py
	$(PY) benchmarks/tester/history.py
	$(PY) benchmarks/judgement/change_points.py
	$(PY) benchmarks/tester/setup_times.py
	$(PY) benchmarks/emulated_duts/virtual_time.py
	$(PY) benchmarks/machines/bare_roots.py
	$(PY) benchmarks/machines/rust_version.py
	$(PY) benchmarks/emulated_duts/cipher_kernels.py

campaign:
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory boards
	@# An hour or more; Ctrl-C, and the same command goes on. CAMPAIGN="--rows generator --count 3" does a part of it.
	cd benchmarks && ../$(PY) -m campaign $(CAMPAIGN)

# Wheels with the programs in them, for this machine and, where they can be built, for arm64; and a Debian package for this
# release; all in dist/ (docs/install.md).
dist: setup
	@scripts/dist.sh all

deb: setup
	@scripts/deb.sh

# Debian 12 and 13 under Debian's kernels, as root: an hour or more, with the emulated machines (docs/tried.md). Ctrl-C,
# and the same command goes on.
test-matrix: setup
	$(PY) benchmarks/machines/matrix.py $(MATRIX)

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --extra dev --extra lab --extra cluster --extra build pyproject.toml -o requirements.lock

clean:
	@$(PY) -m espbench clean
