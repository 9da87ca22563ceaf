#!/usr/bin/env bash
# What a container of Shoal holds (scripts/image.sh) serves with nothing else around it, as a user that is not root.
source "$(dirname "$0")/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "chroot wants root"
PATH=/usr/sbin:/usr/bin:/sbin:/bin
[ "$SHOAL_BIN" = "$PWD/build/shoal" ] || skip "the image is of build/shoal"
(umask 077 && SHOAL_IMAGE_ONLY=1 SHOAL_IMAGE_DIR="$work/packed" scripts/image.sh >"$work/said") || fail "image.sh"
mkdir "$work/image" && tar -C "$work/image" -xpf "$work/packed/rootfs.tar" || fail "the archive"
[ "$(stat -c '%u %a' "$work/image/var/lib/shoal" "$work/image/usr/bin/shoal" | tr '\n' ' ')" = "65532 700 0 755 " ] ||
    fail "owners: $(ls -ld "$work/image/var/lib/shoal" "$work/image/usr/bin/shoal")"
packed=$(sed -n 's/.* \([0-9.]*\) MB packed$/\1/p' "$work/said")
awk -v p="$packed" 'BEGIN { exit !(p > 20 && p < 60) }' || fail "it has $packed MB packed: $(cat "$work/said")"
[ -z "$(find "$work/image" -name 'sh' -o -name 'bash')" ] || fail "a shell is in it"
chmod 755 "$work" # the server's user goes through it
export SHOAL_STATE=/var/lib/shoal
unshare --mount sh -c 'mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && exec chroot --userspec=65532:65532 "$1" /usr/bin/shoal serve --port 0' \
    sh "$work/image" >"$work/ready" 2>"$log" </dev/null &
server=$!
for _ in $(seq 400); do
    grep -qs '^ready ' "$work/ready" && break
    kill -0 "$server" 2>/dev/null || fail "it does not start: $(tail -2 "$log")"
    sleep 0.05
done
url=$(sed -n 's/^ready \(http[^ ]*\) replicas=5 failed=0.*/\1/p' "$work/ready")
[ -n "$url" ] || fail "it is not ready: $(cat "$work/ready" "$log" | tail -3)"
curl -s "$url/v1/process" -d '{"input": "turn off the kitchen light"}' | grep -q '"light.turn_off"' || fail "it does not answer"
curl -s "$url/v1/chat/completions" -d '{"model": "home-chat-s", "session": "a", "max_tokens": 4, "messages": [{"role": "user", "content": "hello"}]}' |
    grep -q '"choices"' || fail "it keeps no session"
[ -f "$work/image/var/lib/shoal/sessions.db" ] || fail "it keeps nothing: $(ls -la "$work/image/var/lib/shoal")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "it ended with $stopped: $(tail -2 "$log")"
cat "$work/said"
