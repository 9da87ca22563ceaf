#!/usr/bin/env bash
# Make Debian's packages in build/deb: shoal, shoal-models, libshoal0, libshoal-dev; then look them over with lintian.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v dpkg-buildpackage >/dev/null || command -v apt-get >/dev/null || {
    echo "deb: Debian's packages are made on Debian or Ubuntu; elsewhere: make install" >&2
    exit 1
}
scripts/setup.sh --deb
version=$(sed -n 's/^project(shoal VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
packaged=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
[ "$version" = "$packaged" ] || {
    echo "deb: debian/changelog is of $packaged, and CMakeLists.txt of $version: add an entry" >&2
    exit 1
}
rm -rf build/deb
mkdir -p build/deb/src
git ls-files -z | xargs -0 cp --parents -t build/deb/src
log=build/deb/build.log
echo "deb: building (a few minutes; $log)"
(cd build/deb/src && dpkg-buildpackage -b -us -uc -j"${JOBS:-$(nproc)}") >"$log" 2>&1 || {
    tail -25 "$log" >&2
    exit 1
}
lintian --fail-on error,warning --tag-display-limit 0 --allow-root build/deb/*.changes
ls -sh build/deb/*.deb
