#!/usr/bin/env bash
# Install what Shoal needs to build, run and test: with apt on Debian and Ubuntu (as root or through
# sudo); elsewhere, name it. Says nothing when nothing is missing.
#
#   scripts/setup.sh            to build and run      scripts/setup.sh --test    and to test
#   scripts/setup.sh --cross    to build for AArch64 and run that here (scripts/neon.sh)
#   scripts/setup.sh --clients  to try real clients: Node.js, Chromium
#   scripts/setup.sh --deb      to make Debian's packages (scripts/deb.sh)
#   scripts/setup.sh --html     to make the documentation's pages (scripts/html.sh)
set -euo pipefail

build_packages=(
    gcc make cmake ninja-build pkg-config git ca-certificates
    libuv1-dev libnghttp2-dev libssl-dev libjansson-dev libyaml-dev
    libprotobuf-c-dev protobuf-c-compiler libpcre2-dev libutf8proc-dev libedit-dev
    libsndfile1-dev libvorbis-dev libmpg123-dev libpng-dev libjpeg-dev
    zlib1g-dev libzstd-dev libcurl4-openssl-dev libc-ares-dev libsqlite3-dev libhiredis-dev libwslay-dev
)
test_packages=(libcmocka-dev lld curl python3 python3-grpcio dnsmasq-base etcd-server redis-server)
html_packages=(python3 python3-markdown-it)
client_packages=() # what there is of them may have come from elsewhere
command -v npm >/dev/null || client_packages+=(nodejs npm)
command -v chromium chromium-browser google-chrome >/dev/null || client_packages+=(chromium)

cross_packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
deb_packages=(dpkg-dev debhelper lintian fakeroot debootstrap)
[ "${1:-} $(uname -m)" != "--cross aarch64" ] || exit 0 # nothing to cross

packages=("${build_packages[@]}")
[ "${1:-}" = "--test" ] && packages+=("${test_packages[@]}")
[ "${1:-}" = "--cross" ] && packages+=("${cross_packages[@]}")
[ "${1:-}" = "--clients" ] && packages+=("${client_packages[@]}")
[ "${1:-}" = "--html" ] && packages=("${html_packages[@]}")
[ "${1:-}" = "--deb" ] && packages+=("${deb_packages[@]}")

if ! command -v dpkg-query >/dev/null; then
    for tool in cmake ninja pkg-config cc protoc-c; do
        command -v "$tool" >/dev/null || missing_tool=1
    done
    [ "${1:-}" != "--cross" ] || command -v aarch64-linux-gnu-gcc qemu-aarch64 >/dev/null || missing_tool=1
    if [ -n "${missing_tool:-}" ] || ! pkg-config --exists libuv libnghttp2 libssl jansson yaml-0.1 libprotobuf-c libpcre2-8 libedit sndfile vorbisfile libmpg123 libpng libjpeg zlib libzstd libcurl libcares sqlite3 hiredis; then
        echo "setup: this is not Debian or Ubuntu; install these (names as in Debian 12), then run again:" >&2
        printf '  %s\n' "${packages[@]}" >&2
        exit 1
    fi
    exit 0
fi

missing=()
for p in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup: install these as root, then run again: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
    [[ ${1:-} != --c* ]] || [ -t 1 ] || as_root+=(-n) # what is not needed is not worth a question that nobody sees
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
