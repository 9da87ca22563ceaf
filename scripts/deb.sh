#!/usr/bin/env bash
# Make Debian's packages in build/deb: shoal, shoal-models, libshoal0, libshoal-dev; then look them over with lintian.
#
#   scripts/deb.sh            of this machine's architecture
#   scripts/deb.sh arm64      built here for arm64, in build/deb-arm64, without shoal-models, which is the same for all
#
# arm64's libraries are those of scripts/sysroot.sh; qemu-user runs the program for what it says of itself (manual, completions).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v dpkg-buildpackage >/dev/null || command -v apt-get >/dev/null || {
    echo "deb: Debian's packages are made on Debian or Ubuntu; elsewhere: make install" >&2
    exit 1
}
scripts/setup.sh --deb
arch=${1:-$(dpkg --print-architecture)}
out=build/deb how=(-b)
if [ "$arch" != "$(dpkg --print-architecture)" ]; then
    [ "$arch" = arm64 ] || { echo "deb: $arch is not built here; arm64 is" >&2; exit 1; }
    scripts/setup.sh --cross
    scripts/sysroot.sh
    out=build/deb-arm64 how=(-B -d --host-arch arm64) # -d: the libraries lie in the sysroot, not in this system
    export SHOAL_SYSROOT=$PWD/build/aarch64/sysroot
fi
version=$(sed -n 's/^project(shoal VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
packaged=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
[ "$version" = "$packaged" ] || {
    echo "deb: debian/changelog is of $packaged, and CMakeLists.txt of $version: add an entry" >&2
    exit 1
}
rm -rf "$out"
mkdir -p "$out/src"
git ls-files -z | xargs -0 cp --parents -t "$out/src"
log=$PWD/$out/build.log
echo "deb: building for $arch (a few minutes; $out/build.log)"
(cd "$out/src" && dpkg-buildpackage "${how[@]}" -us -uc -j"${JOBS:-$(nproc)}") >"$log" 2>&1 || {
    tail -25 "$log" >&2
    exit 1
}
lintian --fail-on error,warning --tag-display-limit 0 --allow-root "$out"/*.changes
ls -sh "$out"/*.deb
