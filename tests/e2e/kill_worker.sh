#!/usr/bin/env bash
# kill -9 of each worker under load: the others answer on, it comes back and goes on with its streams, the gateway
# never exits. What the streams say then is failover.sh's.
source "$(dirname "$0")/lib.sh"
start_shoal
classify() { curl -s -o "$work/c" -w '%{http_code}' -m 10 "$url/v1/classify" -d '{"model":"home-intent","input":"play jazz '"$1"'"}'; }
chat() {
    curl -sN -m 20 "$url/v1/chat/completions" -d '{"model":"home-chat-s","stream":true,"temperature":1,"seed":'"$1"',"ignore_eos":true,"max_tokens":1900,"messages":[{"role":"user","content":"tell me everything"}]}'
}
worker_pid() { curl -s "$url/readyz" | tr '{' '\n' | grep "\"$1/0\"" | grep -o '"pid":[0-9]*' | cut -d: -f2; }

[ "$(classify 0)" = 200 ] || fail "classify before: $(cat "$work/c")"
pid=$(worker_pid home-chat-s)
[ -n "$pid" ] || fail "no pid of home-chat-s in /readyz: $(curl -s "$url/readyz")"
for i in 1 2 3 4; do chat $i >"$work/stream.$i" & streams+=($!); done
for _ in $(seq 100); do [ -s "$work/stream.1" ] && break; sleep 0.01; done
kill -9 "$pid"
for i in $(seq 20); do [ "$(classify "$i")" = 200 ] || fail "classify while home-chat-s is down: $(cat "$work/c")"; done
wait "${streams[@]}"
for i in 1 2 3 4; do
    errors=$(grep -c '"error"' "$work/stream.$i")
    whole=$(grep -c 'data: \[DONE\]' "$work/stream.$i")
    [ "$errors" -eq 0 ] && [ "$whole" -eq 1 ] ||
        fail "stream $i ended with $errors errors and $whole ends: $(tail -c 300 "$work/stream.$i")"
done
grep -q 'event=moved model=home-chat-s cause=lost' "$log" || fail "no stream was on the worker when it died"
for _ in $(seq 100); do
    new=$(worker_pid home-chat-s)
    [ -n "$new" ] && [ "$new" != "$pid" ] && [ "$new" != 0 ] && curl -s "$url/readyz" | grep -q '"status":"ready"' && break
    sleep 0.02
done
[ -n "$new" ] && [ "$new" != "$pid" ] || fail "home-chat-s did not come back"
chat 9 | grep -q 'data: \[DONE\]' || fail "home-chat-s does not answer after its restart"
for m in home-intent home-slots home-embed home-chat-m; do kill -9 "$(worker_pid $m)"; done
for _ in $(seq 200); do curl -s "$url/readyz" | grep -q '"status":"ready"' && break; sleep 0.02; done
curl -s "$url/readyz" | grep -q '"status":"ready"' || fail "not all workers came back: $(curl -s "$url/readyz")"
[ "$(classify 99)" = 200 ] || fail "classify after: $(cat "$work/c")"
curl -s "$url/metrics" | grep -qE '^shoal_worker_crashes_total\{.*\} [1-9]' || fail "no crash was counted"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
pgrep -f "worker .*$(basename "$work")" >/dev/null && fail "a worker outlived the server"
echo "five workers killed, five back, no stream broken"
