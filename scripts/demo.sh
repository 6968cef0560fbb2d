#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a small plan after scripts/setup.sh: in real time, or in virtual time where no gateways of real time can be had
# (an ordinary user, most containers). Those in virtual time are built first: once, minutes.
set -uo pipefail
cd "$(dirname "$0")/.."
espbench() { .venv/bin/python -m espbench "$@"; }

plan=quick
espbench doctor --real-time
case $? in
    0) ;;
    4) plan=virtual-quick; espbench build x86 || exit ;;
    *) exit 1 ;;
esac
espbench run "plans/$plan.yaml"
code=$?
# 3: the run is complete, and some result is LOWER_BOUND, INVALID, UNRESOLVABLE or VIOLATED.
[ "$code" = 3 ] || exit "$code"
