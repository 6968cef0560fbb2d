#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel dist/espbench-*.whl, with the programs that cargo builds and the manual page in it, for this kind of processor or for the
# one that is named: `dist.sh [x86_64|aarch64]`, and prints its path. The same commit gives the same wheel.
# `dist.sh all` also builds the one for aarch64, if what it needs is here; otherwise it says what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$(uname -m)
machine=${1:-$here}
die() { printf 'dist: %s\n' "$*" >&2; exit 4; }
case "$machine" in
    x86_64 | aarch64) ;;
    all)
        scripts/dist.sh "$here"
        [ "$here" = aarch64 ] || scripts/dist.sh aarch64 || [ $? -eq 4 ]
        exit
        ;;
    *) die "expected x86_64, aarch64 or all, got $machine" ;;
esac

build=(cargo build --release --locked --quiet --workspace --manifest-path traffic/Cargo.toml)
made=traffic/target/release
if [ "$machine" != "$here" ]; then
    linker=$machine-linux-gnu-gcc
    command -v "$linker" >/dev/null ||
        die "no wheel for $machine, since there is no $linker; as root: apt-get install -y gcc-${machine/_/-}-linux-gnu"
    rustc --print target-libdir --target "$machine-unknown-linux-gnu" | xargs test -d ||
        die "no wheel for $machine, since Rust has no library for it: rustup target add $machine-unknown-linux-gnu"
    variable=CARGO_TARGET_$(tr '[:lower:]' '[:upper:]' <<< "$machine")_UNKNOWN_LINUX_GNU_LINKER
    export "$variable=$linker"
    build+=(--target "$machine-unknown-linux-gnu")
    made=traffic/target/$machine-unknown-linux-gnu/release
fi
"${build[@]}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=$work/programs
mkdir -p "$programs" dist
cp "$made"/espbench-{traffic,ixp} "$programs"
# The oldest C library that has all that the programs ask for is what the wheel's name promises (PEP 600).
glibc=$(readelf --version-info "$programs"/* | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n 1)
.venv/bin/python scripts/man_page.py > "$work/espbench.1"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0) \
    ESPBENCH_MAN_PAGE=$work/espbench.1 ESPBENCH_PROGRAMS=$programs ESPBENCH_PLATFORM=manylinux_2_${glibc#GLIBC_2.}_$machine \
    .venv/bin/python -m hatchling build --target wheel --directory "$work/wheel" >/dev/null
# There may be wheels of other versions in dist.
wheel=$(basename "$work"/wheel/*.whl)
mv "$work/wheel/$wheel" "dist/$wheel"
echo "dist/$wheel"
