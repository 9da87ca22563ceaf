#!/usr/bin/env bash
# shoal top: one block, JSON, blocks in a pipe, and on a terminal, which it leaves as it was when q is pressed.
source "$(dirname "$0")/lib.sh"
command -v script >/dev/null || skip "script (bsdutils) is not there"
start_shoal
top() { timeout 20 "$SHOAL_BIN" top --url "$url" -i 100 "$@"; }
for _ in 1 2 3; do curl -s "$url/v1/completions" -H 'content-type: application/json' -H 'cache-control: no-store' \
    -d '{"model":"home-chat-s","prompt":"a","max_tokens":900,"ignore_eos":true}' >/dev/null & done
one=$(top --once) || fail "status $?: $one"
[[ $one == "shoal "*" ready "*"replicas 5/5"* ]] || fail "no summary: $one"
grep -q '^home-chat-s/0 .* ready ' <<<"$one" || fail "no replica: $one"
grep -q $'\x1b' <<<"$one" && fail "codes for a terminal in a pipe"
top --json --once | grep -q '^{.*"id":"home-intent/0".*"tokens_per_s":.*}$' || fail "no JSON"
[ "$(top | head -16 | grep -c '^shoal ')" -ge 2 ] || fail "not one block after another in a pipe"
: >"$work/screen"
(for _ in $(seq 400); do grep -q home-chat-s/0 "$work/screen" && break; sleep 0.05; done; printf q) |
    timeout 60 script -qefc "'$SHOAL_BIN' top --url '$url' -i 100" "$work/screen" >/dev/null || fail "on a terminal: $(cat -v "$work/screen")"
drawn=$(cat "$work/screen")
[[ $drawn == *$'\x1b[?1049h'*"home-chat-s/0"*$'\x1b[?1049l'* ]] || fail "not drawn, or the screen was not given back: $drawn"
wait $(jobs -p | grep -v "^$server$")
stop_shoal
gone=$(top --once 2>&1) && fail "a gateway that is gone was shown"
[[ $gone == *refused* ]] || fail "what is wrong was not said: $gone"
echo "shown in a pipe and on a terminal"
