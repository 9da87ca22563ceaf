#!/usr/bin/env bash
# The load client of `shoal bench`: counts what it asked for and what failed, asks nothing twice unless told to, and
# finds the server's process. No speed is held to anything.
source "$(dirname "$0")/lib.sh"
load() { "$SHOAL_BIN" bench --url "$url" --load home-chat-s -p 6 -n 5 "$@"; }
value() { grep -o "\"$1\":[0-9.]*" "$work/out" | cut -d: -f2 | paste -sd ' '; }
hits() { curl -s "$url/metrics" | awk '/^shoal_cache_lookups_total.*result="hit"/ { n += $2 } END { print n + 0 }'; }

start_shoal
load --requests 12 --clients 1,3 --json >"$work/out" || fail "closed loops"
[ "$(value clients)" = "1 3" ] && [ "$(value ok)" = "12 12" ] && [ "$(value failed)" = "0 0" ] || fail "$(cat "$work/out")"
[ "$(value tokens)" = "60 60" ] || fail "tokens by usage: $(value tokens)"
awk -v v="$(value cpu_s)" 'BEGIN { split(v, c, " "); exit !(c[1] >= 0) }' || fail "no CPU time: $(value cpu_s)"
load --requests 9 --rate 200 --json >"$work/out" || fail "an open loop"
[ "$(value clients)" = 64 ] && [ "$(value rate)" = 200 ] && [ "$(value ok)" = 9 ] || fail "$(cat "$work/out")"
load --requests 9 --cached --clients 1 --json >"$work/out" || fail "--cached"
[ "$(value ok)" = 9 ] || fail "$(cat "$work/out")"
for _ in $(seq 100); do [ "$(hits)" -ge 8 ] && break; sleep 0.1; done # what is counted is told a little later
[ "$(hits)" = 8 ] || fail "the cache is to answer all of --cached but the first, and nothing else: $(hits) answers"
load --requests 2 --clients 2 >"$work/out" 2>"$work/err" || fail "the table"
grep -qE '^ +2 +[0-9.]+ +2 +0 ' "$work/out" || fail "$(cat "$work/out")"
"$SHOAL_BIN" bench --url "$url" --load nobody --requests 3 --clients 1 --json >"$work/out" 2>"$work/err"
[ "$(value failed)" = 3 ] && grep -q 'first failure: status 404' "$work/err" || fail "a model that is not there"

refused() {
    "$SHOAL_BIN" bench "${@:2}" >"$work/out" 2>"$work/err" && fail "bench ${*:2} is taken"
    grep -q -- "$1" "$work/err" || fail "bench ${*:2}: $(cat "$work/err")"
}
refused '--server URL' --load home-chat-s
refused '--clients wants' --url "$url" --load home-chat-s --clients 0
refused '--rate wants' --url "$url" --load home-chat-s --rate -1
refused 'no such process' --url "$url" --load home-chat-s --pid 999999999
refused 'neither ADDRESS' --url 'no address' --load home-chat-s
stop_shoal
"$SHOAL_BIN" bench --url "$url" --load home-chat-s --requests 2 --clients 1 --json >"$work/out" 2>"$work/err"
[ "$(value failed)" = 2 ] || fail "a server that is gone: $(cat "$work/out")"
echo "closed and open loops, counted by usage"
