#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command and says how long it took: `scripts/timed.sh NAME COMMAND …`. Ends with the command's exit code.
name=$1
shift
"$@"
code=$?
printf '==> %s: %d min %02d s, exit code %d\n' "$name" $((SECONDS / 60)) $((SECONDS % 60)) $code
exit $code
