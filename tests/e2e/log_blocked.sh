#!/usr/bin/env bash
# A log that nobody reads: requests are answered, it stops as it should, and the missing lines are counted.
source "$(dirname "$0")/lib.sh"
mkfifo "$work/log"
exec 4<>"$work/log" # opened, not read
real=$log log=$work/log
start_shoal
log=$real
classify() { curl -s -o "$work/c" -w '%{http_code}' -m 10 -H 'Cache-Control: no-cache' "$url/v1/classify" -d '{"model":"home-intent","input":"play '"$1"'"}'; }
for i in $(seq 300); do # a pipe holds 64 KiB, which is less than half of what these say
    code=$(classify "$i")
    [ "$code" = 200 ] || fail "request $i of a server whose log is full: $code"
done
[ "$(curl -s -o /dev/null -w '%{http_code}' -m 10 "$url/healthz")" = 200 ] || fail "healthz does not answer"
timeout 1 cat <&4 >"$log"
code=$(classify again)
[ "$code" = 200 ] || fail "after the log was read: $code $(cat "$work/c") $(timeout 1 cat <&4 | tail -5)"
sleep 0.2
timeout 1 cat <&4 >>"$log"
grep -q 'component=log event=lines_dropped lines=[1-9]' "$log" || fail "the log does not say that lines are missing"
for i in $(seq 300); do classify "$i" >/dev/null; done
kill "$server"
for _ in $(seq 100); do kill -0 "$server" 2>/dev/null || break; sleep 0.1; done
kill -0 "$server" 2>/dev/null && fail "SIGTERM has no effect while the log is full"
wait "$server"
stopped=$?
server=
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "600 requests past a full log, $(grep -o 'lines_dropped lines=[0-9]*' "$log" | head -1)"
