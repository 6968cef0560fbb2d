#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes these targets one after another, also if one fails, and says at the end how each ended:
# `scripts/parts.sh TARGET …`. Ends with 1 if any failed; Ctrl-C ends it at once.
set -u
ended=() failed=0
trap 'exit 130' INT
for part in "$@"; do
    began=$SECONDS
    "${MAKE:-make}" --no-print-directory "$part"
    code=$?
    [ $code -eq 0 ] && how=passed || { how=FAILED failed=1; }
    ended+=("$(printf '%-14s %s, %d min %02d s' "$part" $how $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)))")
done
echo "==> in all:"
printf '    %s\n' "${ended[@]}"
exit $failed
