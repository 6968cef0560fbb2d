#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package dist/espbench_*.deb for this machine's release and kind of processor. Its Python packages are those
# of requirements.lock, in a virtual environment of its own below /usr/lib/espbench; the rest comes from Debian. The environment
# has no pip, which would change files of the package, so all extras for users are in it.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { printf 'deb: %s\n' "$*" >&2; exit 4; }
command -v dpkg-deb >/dev/null || die "no dpkg-deb: this is no Debian system"
python=/usr/bin/python3
minor=$("$python" -c 'import sys; print(sys.version_info.minor)')
"$python" -c 'import ensurepip' 2>/dev/null || die "no venv for $python; as root: apt-get install -y python3-venv"
wheel=$(scripts/dist.sh)
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' harness/espbench/version.py)
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
home=usr/lib/espbench
site=$home/lib/python3.$minor/site-packages
"$python" -m venv --without-pip "$stage/$home"
rm "$stage/$home"/bin/[Aa]ctivate*
sed -i '/^command = /d' "$stage/$home/pyvenv.cfg"
# The lock without hashes is a list of constraints: which versions, not which packages.
sed -e 's/ *\\$//' -e '/^ *--hash/d' requirements.lock > "$stage/constraints"
.venv/bin/pip install --quiet --disable-pip-version-check --no-compile --only-binary=:all: --python-version "3.$minor" \
    --target "$stage/$site" --constraint "$stage/constraints" "${wheel}[cluster,lab,metrics]"
rm -r "$stage/$site/bin" "$stage/constraints"
printf '#!/%s/bin/python3\nfrom espbench.cli.main import main\n\nmain()\n' "$home" > "$stage/$home/bin/espbench"
chmod 755 "$stage/$home/bin/espbench"
"$python" -m compileall -q --invalidation-mode unchecked-hash -s "$stage" -p / "$stage/$site" >/dev/null || true
mkdir -p "$stage"/usr/{bin,share/man/man1,share/doc/espbench,share/bash-completion/completions}
ln -s "/$home/bin/espbench" "$stage/usr/bin/espbench"
.venv/bin/python scripts/man_page.py | gzip -9n > "$stage/usr/share/man/man1/espbench.1.gz"
gzip -9nc CHANGELOG.md > "$stage/usr/share/doc/espbench/changelog.gz"
cp LICENSE "$stage/usr/share/doc/espbench/copyright"
cat > "$stage/usr/share/bash-completion/completions/espbench" <<'EOF'
_espbench() {
    mapfile -t COMPREPLY < <(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _ESPBENCH_COMPLETE=complete_bash "$1")
}
complete -o default -F _espbench espbench
EOF

# What scripts/packages.txt has for these uses, but for python3-venv and what builds the generator.
packages() { sed -n "/^\[$1\]/,/^\[/p" scripts/packages.txt | sed '/^\[/d; s/ .*//' | paste -sd , | sed 's/,/, /g'; }
mkdir "$stage/DEBIAN"
cat > "$stage/DEBIAN/control" <<EOF
Package: espbench
Version: $version
Architecture: $architecture
Maintainer: the espbench developers <espbench@localhost>
Section: net
Priority: optional
Installed-Size: $(du -sk "$stage/usr" | cut -f 1)
Depends: python3 (>= 3.$minor), python3 (<< 3.$((minor + 1))), libc6, $(packages root | sed 's/user-mode-linux, //')
Recommends: user-mode-linux, gcc, libc6-dev, $(packages virtual)
Description: RFC 2544 test harness for IPsec gateways
 Builds tester, two gateways and tester on this machine, or drives boxes, searches the throughput at zero and at
 0.001 % loss, records what CPU each gateway paid for it, and proves that what it counted was encrypted.
EOF
dpkg-deb --root-owner-group -Zgzip --build "$stage" dist >/dev/null
ls "dist/espbench_${version}_$architecture.deb"
