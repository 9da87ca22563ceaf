#!/usr/bin/env bash
# A worker that lives and does nothing (SIGSTOP for good) is ended and replaced.
source "$(dirname "$0")/lib.sh"
start_shoal
worker_pid() { curl -s "$url/readyz" | tr '{' '\n' | grep "\"$1/0\"" | grep -o '"pid":[0-9]*' | cut -d: -f2; }
pid=$(worker_pid home-embed)
kill -STOP "$pid"
for _ in $(seq 60); do # it takes one second; six prove that it is not the ten of a mere silence
    new=$(worker_pid home-embed)
    [ -n "$new" ] && [ "$new" != "$pid" ] && [ "$new" != 0 ] && curl -s "$url/readyz" | grep -q '"status":"ready"' && break
    sleep 0.1
done
[ "$new" != "$pid" ] || fail "the stopped worker was not replaced in 6 s"
code=$(curl -s -o "$work/e" -w '%{http_code}' -m 10 "$url/v1/embeddings" -d '{"model":"home-embed","input":"hello"}')
[ "$code" = 200 ] || fail "the new worker answers $code: $(cat "$work/e")"
grep -q 'event=worker_wedged' "$log" || fail "the log does not say why"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "the stopped worker was replaced"
