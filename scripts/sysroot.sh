#!/usr/bin/env bash
# Unpack the arm64 packages that Shoal is linked with into build/aarch64/sysroot: scripts/neon.sh, and arm64's packages (scripts/deb.sh).
#
# Lists and cache of apt are the script's own: nothing of the system's package database changes. var/lib/dpkg of the folder says which
# package has which file of it (whole paths), for dpkg-shlibdeps. Exit 77: it cannot be done here; the last line says why.
set -euo pipefail
cd "$(dirname "$0")/.."
root=build/aarch64/sysroot
libraries=(libssl-dev libjansson-dev libyaml-dev libuv1-dev libnghttp2-dev libprotobuf-c-dev libpcre2-dev
    libutf8proc-dev libedit-dev libcmocka-dev
    libsndfile1-dev libvorbis-dev libmpg123-dev libpng-dev libjpeg62-turbo-dev zlib1g-dev libzstd-dev libcurl4-openssl-dev
    libc-ares-dev
    libsqlite3-dev libhiredis-dev libwslay-dev)
wanted="$PWD/$root: ${libraries[*]}"
[ "$(cat "$root/packages" 2>/dev/null)" != "$wanted" ] || exit 0
skip() { echo "$*"; exit 77; }
command -v apt-get >/dev/null || skip "no apt-get to fetch the arm64 libraries with"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apt=$work/apt new=$root.new
# apt as if this were a bare arm64 machine whose files are all under $apt.
foreign_apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false \
        -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o Debug::NoLocking=true -o APT::Update::Error-Mode=any -o APT::Sandbox::User= "$@"
}
echo "fetching the arm64 packages of ${libraries[*]} into $root"
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
{ foreign_apt update && foreign_apt install -y --download-only "${libraries[@]}"; } >"$work/apt.log" 2>&1 ||
    skip "the arm64 libraries cannot be had: $(grep '^E:' "$work/apt.log" | head -1)"
rm -rf "$new"
info=$new/var/lib/dpkg/info
mkdir -p "$info" "$new/var/lib/dpkg/updates"
echo 1 >"$info/format" # names with an architecture
printf '%s\n' "$(dpkg --print-architecture)" arm64 >"$new/var/lib/dpkg/arch"
for package in "$apt"/cache/archives/*.deb; do
    dpkg -x "$package" "$new"
    name=$(dpkg-deb -f "$package" Package)
    [ "$(dpkg-deb -f "$package" Multi-Arch)" != same ] || name+=:arm64
    dpkg-deb -e "$package" "$work/control"
    for file in symbols shlibs; do [ ! -f "$work/control/$file" ] || cp "$work/control/$file" "$info/$name.$file"; done
    rm -r "$work/control"
    dpkg-deb --fsys-tarfile "$package" | tar -t | sed -n "s|^\.\(/.*[^/]\)\$|$PWD/$root\1|p" >"$info/$name.list"
    dpkg-deb -f "$package" Package Architecture Multi-Arch Version Maintainer Depends Provides | sed '1a Status: install ok installed' >>"$new/var/lib/dpkg/status"
    echo "Description: unpacked" >>"$new/var/lib/dpkg/status"
    echo >>"$new/var/lib/dpkg/status"
done
# Links from the root on would lead out of the folder.
(cd "$new" && find . -type l -lname '/*' -printf '%p %l\n' | while read -r link to; do ln -sfnr ".$to" "$link"; done)
echo "$wanted" >"$new/packages"
rm -rf "$root"
mv "$new" "$root"
