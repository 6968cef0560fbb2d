#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, makes the virtual environment, builds the generator, for tests also the emulated boards'
# kernel and QEMU (minutes, once): `setup.sh run|test`.
# Asks nothing; a second run finds everything in place and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
want=${1:-run}

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 4; }

# --- Debian packages ------------------------------------------------------------------------
missing=()
section=run
while read -r package witness _; do
    case "$package" in '' | '#'*) continue ;; '[test]') section=test; continue ;; esac
    [ "$section" = test ] && [ "$want" != test ] && continue
    case "$witness" in
        /*) [ -e "$witness" ] || missing+=("$package") ;;
        *) PATH=$PATH:/usr/sbin:/sbin command -v "$witness" >/dev/null || missing+=("$package") ;;
    esac
done < scripts/packages.txt
if [ ${#missing[@]} -gt 0 ]; then
    install="apt-get install --no-install-recommends -y ${missing[*]}"
    [ "$(id -u)" = 0 ] || die "missing Debian packages; as root: $install"
    command -v apt-get >/dev/null || die "missing, and this is no Debian system: ${missing[*]}"
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # An old package list points at files that are gone: update first, quietly.
    apt-get update -qq </dev/null >/dev/null
    $install -qq </dev/null >/dev/null
fi

# --- Python ---------------------------------------------------------------------------------
python=""
for candidate in python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" >/dev/null &&
        "$candidate" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || die "Python 3.11 or newer with venv is needed; as root: apt-get install -y python3 python3-venv"
stamp=$(cat requirements.lock pyproject.toml scripts/setup.sh | sha256sum | cut -c1-16)
if [ "$(cat .venv/stamp 2>/dev/null)" != "$stamp" ]; then
    say "making the virtual environment"
    rm -rf .venv
    "$python" -m venv .venv
    .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
    echo "$stamp" > .venv/stamp
fi

# --- the generator --------------------------------------------------------------------------
command -v cargo >/dev/null || die "cargo is needed (Rust 1.85 or newer); as root: apt-get install -y cargo, or rustup"
cargo build --release --locked --quiet --manifest-path traffic/Cargo.toml

# --- the emulated boards --------------------------------------------------------------------
# Before any test, so that its minutes are seen to pass; says by itself what this machine lacks.
if [ "$want" = test ]; then
    .venv/bin/espbench build e500 >/dev/null
fi
