#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing (`setup.sh test`: also what the tests and the emulated boards need), makes the virtual
# environment, builds the generator and the network processor: `setup.sh run|test`.
# Asks nothing; a second run finds everything in place and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
want=${1:-run}

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 4; }
case "$want" in run | test) ;; *) die "expected run or test, got $want" ;; esac

# --- Debian packages ------------------------------------------------------------------------
missing=()
# Adds the packages of these sections of packages.txt that are not here to `missing`.
look_for() {
    local package witness section=all
    while read -r package witness _; do
        case "$package" in '' | '#'*) continue ;; '['*) section=${package//[\[\]]/}; continue ;; esac
        [[ " $* " == *" $section "* ]] || continue
        case "$witness" in
            /*) [ -e "$witness" ] || missing+=("$package") ;;
            run:*) "${witness#run:}" >/dev/null || missing+=("$package") ;;
            *) PATH=$PATH:/usr/sbin:/sbin command -v "$witness" >/dev/null || missing+=("$package") ;;
        esac
    done < scripts/packages.txt
}
update_lists() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        # An old package list points at files that are gone, and a new machine has none: update first, quietly.
        apt-get update -qq </dev/null >/dev/null
    fi
}
# The name of a system that has apt-get but is not Debian itself, or nothing.
made_from_debian() {
    command -v apt-get >/dev/null || return 0
    [ ! -r /etc/os-release ] || . /etc/os-release
    [ "${ID:-}" = debian ] || echo "${PRETTY_NAME:-this system}"
}
install_missing() {
    local kin install="apt-get install --no-install-recommends -y ${missing[*]}"
    kin=$(made_from_debian)
    [ -z "$kin" ] || printf 'setup: %s is not Debian: it may call some of the packages otherwise, and %s\n' "$kin" \
        "its archives do not have the sources of Debian 12, from which emulated gateways are built" >&2
    command -v apt-get >/dev/null || die "missing, by the names of Debian's packages: ${missing[*]}; this system has no" \
        "apt-get, and espbench does not know what they are called here: install what has the same programs and headers"
    [ "$(id -u)" = 0 ] || die "missing Debian packages; as root: $install"
    say "installing ${missing[*]}"
    DEBIAN_FRONTEND=noninteractive $install -qq </dev/null >/dev/null
    missing=()
}
# What an ordinary user measures is in virtual time.
if [ "$want" = test ]; then
    look_for all root virtual test
elif [ "$(id -u)" = 0 ]; then
    look_for all root
else
    look_for all virtual
fi
# Debian has Rust as cargo and, for building its browsers, often a newer one as cargo-web.
rust=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' traffic/Cargo.toml)
# A version, or nothing, or "(none)".
new_enough() { [[ $1 == [0-9]* ]] && [ "$(printf '%s\n' "$rust" "$1" | sort -V | head -n 1)" = "$rust" ]; }
rust_package() {
    local package
    for package in cargo cargo-web; do
        new_enough "$(LC_ALL=C apt-cache policy "$package" 2>/dev/null | sed -n 's/^  Candidate: //p')" &&
            echo "$package" && return
    done
    command -v apt-get >/dev/null || die "Rust $rust or newer is needed: use rustup, or a package of this system"
    die "Rust $rust or newer is needed, and no package that apt-get knows here has it: use rustup"
}
no_rust=""
if command -v cargo >/dev/null; then
    have=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) || true
    new_enough "$have" || die "Rust $rust or newer is needed, $(command -v cargo) has ${have:-none}:" \
        "rustup update stable, or as root: apt-get install -y $(rust_package)"
else
    no_rust=1
fi
if [ ${#missing[@]} -gt 0 ] || [ "$no_rust" ]; then
    update_lists
    if [ "$no_rust" ]; then
        rust_has=$(rust_package)
        missing+=("$rust_has")
    fi
    install_missing
fi

python=$(scripts/python.sh || true)
[ -n "$python" ] || die "Python 3.11 or newer with venv is needed; as root: apt-get install -y python3 python3-venv"

# --- the generator, the network processor: built while pip unpacks ------------------------------
cargo build --release --locked --quiet --workspace --manifest-path traffic/Cargo.toml &
programs=$!
trap 'kill "$programs" 2>/dev/null || true' EXIT

# --- Python ---------------------------------------------------------------------------------
# The environment knows the folder's path and its Python: in a folder that was moved or copied, and after an upgrade to
# another Python, it is made anew.
stamp=$({
    cat requirements.lock pyproject.toml scripts/setup.sh
    pwd
    "$python" -c 'import sys; print(sys.version_info[:2])'
} | sha256sum | cut -c1-16)
if [ "$(cat .venv/stamp 2>/dev/null)" != "$stamp" ] || ! .venv/bin/python -c '' 2>/dev/null; then
    say "making the virtual environment"
    rm -rf .venv
    "$python" -m venv .venv
    .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
    echo "$stamp" > .venv/stamp
fi

wait "$programs"
trap - EXIT

# --- root where no gateways of real time can be had, as in most containers: in virtual time, like an ordinary user ---
if [ "$want" = run ] && [ "$(id -u)" = 0 ] && [ "$(uname -m)" = x86_64 ]; then
    code=0
    .venv/bin/python -m espbench doctor --real-time >/dev/null 2>&1 || code=$?
    if [ "$code" = 4 ]; then
        look_for virtual
        [ ${#missing[@]} = 0 ] || { update_lists; install_missing; }
    fi
fi
