#!/usr/bin/env bash
# SIGTERM: no new work, running streams finish, exit 0.
source "$(dirname "$0")/lib.sh"
start_shoal
start_stream
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
