#!/usr/bin/env bash
# Install the packages of build/deb (make deb) in a fresh Debian, serve there as their unit does, ask, and remove them.
# As root; the Debian is made with debootstrap from where this machine's apt gets its packages.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "deb_check: $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || fail "run this as root"
ls build/deb/shoal_*.deb >/dev/null 2>&1 || fail "there are no packages: make deb"
scripts/setup.sh --deb
. /etc/os-release
mirror=$(apt-get indextargets --format '$(SITE)' | head -1)
root=$(mktemp -d)
chmod 755 "$root"
server=
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    mountpoint -q "$root/proc" && umount "$root/proc"
    rm -rf "$root"
}
trap end EXIT
in_root() { chroot "$root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

echo "deb_check: a fresh $VERSION_CODENAME"
debootstrap --variant=minbase "$VERSION_CODENAME" "$root" "$mirror" >"$root.log" 2>&1 || fail "debootstrap: $(tail -1 "$root.log")"
rm -f "$root.log"
mount -t proc proc "$root/proc"
cp -r /etc/apt/. "$root/etc/apt/"
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
cp build/deb/*.deb "$root/root/"
in_root sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends /root/*.deb curl gcc libc6-dev' >"$root/log" 2>&1 ||
    fail "apt-get install: $(tail -3 "$root/log")"

in_root getent passwd shoal >/dev/null || fail "there is no user shoal"
[ "$(in_root stat -c '%U %a' /var/lib/shoal)" = "shoal 700" ] || fail "/var/lib/shoal is not the user's own"
grep -q '^ExecStart=/usr/bin/shoal serve$' "$root/lib/systemd/system/shoal-gateway.service" || fail "the unit starts something else"
[ -f "$root/etc/shoal/shoal.yaml" ] && [ -f "$root/usr/share/man/man1/shoal.1.gz" ] || fail "no configuration or no manual"

# ---- as the unit does: its user, its folder, its state
chroot --userspec=shoal:shoal "$root" env -C /var/lib/shoal SHOAL_STATE=/var/lib/shoal /usr/bin/shoal serve --port 18640 \
    >"$root/ready" 2>"$root/log" &
server=$!
for _ in $(seq 200); do grep -qs '^ready ' "$root/ready" && break; sleep 0.1; done
grep -q '^ready .* replicas=5 failed=0' "$root/ready" || fail "it does not serve: $(tail -2 "$root/log")"
in_root curl -s http://127.0.0.1:18640/v1/process -d '{"input": "turn off the kitchen light"}' | grep -q '"light.turn_off"' ||
    fail "it does not answer"
kill "$server" && wait "$server" || fail "it ended with $?"
server=

# ---- a program with the library
cp examples/embed.c "$root/root/"
in_root sh -c 'cd /root && gcc embed.c -lshoal -lm -o embed && ./embed /usr/share/shoal/models/home-embed.gguf good morning' >/dev/null ||
    fail "examples/embed.c does not build and run"

in_root apt-get purge -y -qq shoal shoal-models libshoal-dev libshoal0 >"$root/log" 2>&1 || fail "purge: $(tail -3 "$root/log")"
[ ! -e "$root/usr/bin/shoal" ] && [ ! -e "$root/etc/shoal/shoal.yaml" ] || fail "the purge leaves things behind"
echo "deb_check: installs, serves as its user, answers, links, and goes"
