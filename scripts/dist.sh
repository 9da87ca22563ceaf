#!/usr/bin/env bash
# What a release hands out, in build/dist (make dist): the source archive of HEAD, Debian's packages for amd64 and arm64, SHA256SUMS.
#
#   SHOAL_DIST="source amd64 arm64" scripts/dist.sh    some of it
#
# The archive of a commit has the same bytes each time and on each machine (with the same git and gzip): files are in git's order, and
# have the time of the commit.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/dist
version=$(git show HEAD:CMakeLists.txt | sed -n 's/^project(shoal VERSION \([0-9.]*\).*/\1/p')
name=shoal-$version
rm -rf "$out"
mkdir -p "$out"
[ -z "$(git status --porcelain --untracked-files=no)" ] || { echo "dist: commit first: the archive has what is committed" >&2; exit 1; }
for part in ${SHOAL_DIST:-source amd64 arm64}; do
    if [ "$part" = source ]; then
        git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip -n >"$out/$name.tar.gz"
    elif [ "$part" = "$(dpkg --print-architecture)" ]; then
        scripts/deb.sh
        cp build/deb/*.deb "$out"
    else
        scripts/deb.sh "$part"
        cp "build/deb-$part"/*.deb "$out"
    fi
done
(cd "$out" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
ls -sh "$out"
