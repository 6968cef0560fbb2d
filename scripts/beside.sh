#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests beside each other, and those that failed once more, alone (tests/support/session/company.py):
# `scripts/beside.sh PYTHON MARKERS WORKERS [OPTION …]`.
set -u
python=$1 markers=$2 workers=$3
shift 3
tests() { "$python" -m pytest tests/integration -m "$markers" "$@"; }

# Else pytest-xdist begins with the files that have most tests, and not with those that take longest.
tests -n "$workers" --dist loadfile --no-loadscope-reorder "$@"
code=$?
[ $code -eq 1 ] || exit $code # 1: tests failed; anything else is no test's failure
tests --last-failed --last-failed-no-failures none --alone-again "$@"
