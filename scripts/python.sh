#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the newest Python here that is 3.11 or newer and can make a virtual environment; fails where there is none.
for candidate in python3.14 python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" >/dev/null &&
        "$candidate" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "$candidate"
        exit 0
    fi
done
exit 1
