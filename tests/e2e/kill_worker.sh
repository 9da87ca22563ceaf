#!/usr/bin/env bash
# kill -9 of each worker under load: the others answer on, it comes back and goes on with its streams, the gateway
# never exits. What the streams say then is failover.sh's.
source "$(dirname "$0")/lib.sh"
start_shoal
classify() { curl -s -o "$work/c" -w '%{http_code}' -m 10 "$url/v1/classify" -d '{"model":"home-intent","input":"play jazz '"$1"'"}'; }
chat() {
    curl -sN -m 60 "$url/v1/chat/completions" -d '{"model":"home-chat-s","stream":true,"temperature":1,"seed":'"$1"',"ignore_eos":true,"max_tokens":1900,"messages":[{"role":"user","content":"tell me everything"}]}'
}
worker_pid() { curl -s "$url/readyz" | tr '{' '\n' | grep "\"$1/0\"" | grep -o '"pid":[0-9]*' | cut -d: -f2; }

[ "$(classify 0)" = 200 ] || fail "classify before: $(cat "$work/c")"
# back MODEL PID: another worker than PID serves it, and all others are ready
back() {
    local new
    for _ in $(seq 400); do
        new=$(worker_pid "$1")
        [ -n "$new" ] && [ "$new" != "$2" ] && [ "$new" != 0 ] && curl -s "$url/readyz" | grep -q '"status":"ready"' && return
        sleep 0.05
    done
    fail "$1 did not come back: $(curl -s "$url/readyz")"
}
under_streams() { grep -q 'event=moved model=home-chat-s cause=lost' "$log"; }
for _ in $(seq 10); do # until it died under a stream
    pid=$(worker_pid home-chat-s)
    [ -n "$pid" ] || fail "no pid of home-chat-s in /readyz: $(curl -s "$url/readyz")"
    streams=()
    rm -f "$work"/stream.*
    for i in 1 2 3 4; do chat $i >"$work/stream.$i" & streams+=($!); done
    for _ in $(seq 2000); do [ -s "$work/stream.1" ] && break; sleep 0.01; done
    kill -9 "$pid"
    for i in $(seq 20); do [ "$(classify "$i")" = 200 ] || fail "classify while home-chat-s is down: $(cat "$work/c")"; done
    wait "${streams[@]}"
    for i in 1 2 3 4; do
        errors=$(grep -c '"error"' "$work/stream.$i")
        whole=$(grep -c 'data: \[DONE\]' "$work/stream.$i")
        [ "$errors" -eq 0 ] && [ "$whole" -eq 1 ] ||
            fail "stream $i ended with $errors errors and $whole ends: $(tail -c 300 "$work/stream.$i")"
    done
    back home-chat-s "$pid"
    under_streams && break
done
under_streams || fail "no stream was on the worker when it died"
chat 9 | grep -q 'data: \[DONE\]' || fail "home-chat-s does not answer after its restart"
declare -A killed=()
for m in home-intent home-slots home-embed home-chat-m; do killed[$m]=$(worker_pid $m); done
kill -9 "${killed[@]}"
for m in "${!killed[@]}"; do back "$m" "${killed[$m]}"; done
[ "$(classify 99)" = 200 ] || fail "classify after: $(cat "$work/c")"
curl -s "$url/metrics" | grep -qE '^shoal_worker_crashes_total\{.*\} [1-9]' || fail "no crash was counted"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
pgrep -f "worker .*$(basename "$work")" >/dev/null && fail "a worker outlived the server"
echo "five workers killed, five back, no stream broken"
