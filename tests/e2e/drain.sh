#!/usr/bin/env bash
# SIGTERM: no new work, running streams finish, exit 0.
source "$(dirname "$0")/lib.sh"
start_shoal
for _ in $(seq 10); do # in the middle, unless the stream was quicker
    : >"$work/stream"
    curl -sN -m 30 "$url/v1/chat/completions" -H 'cache-control: no-store' -d '{"model":"home-chat-m","stream":true,"temperature":1,"seed":5,"ignore_eos":true,"max_tokens":900,"messages":[{"role":"user","content":"tell me everything"}]}' >"$work/stream" &
    stream=$!
    for _ in $(seq 2000); do grep -q content "$work/stream" && break; sleep 0.01; done
    grep -q content "$work/stream" || fail "no stream has begun: $(cat "$work/stream")"
    grep -q 'data: \[DONE\]' "$work/stream" || break
    wait "$stream"
done
kill "$server"
sleep 0.1
late=$(curl -s -o "$work/late" -w '%{http_code}' -m 5 "$url/v1/classify" -d '{"model":"home-intent","input":"hello"}')
[ "$late" = 503 ] || [ "$late" = 000 ] || fail "a request during the drain was answered with $late"
wait "$stream"
grep -q 'data: \[DONE\]' "$work/stream" || fail "the running stream was cut: $(tail -c 300 "$work/stream")"
wait "$server"
stopped=$?
server=
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "the stream finished, then exit 0"
