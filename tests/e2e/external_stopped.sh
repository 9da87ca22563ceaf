#!/usr/bin/env bash
# Workers that another program starts, of which one is stopped (SIGSTOP) with calls at it: streams end with the bytes of an undisturbed
# run, unary calls are answered, and it gets no new calls until it goes on.
source "$(dirname "$0")/lib.sh"
declare -A worker clients
stop_others() { kill -9 "${worker[@]}" 2>/dev/null; cleanup; }
trap stop_others EXIT
at() { free_port "$1"; }
address=([1]=127.0.0.1:$(at 1) [2]=127.0.0.1:$(at 2) [3]=127.0.0.1:$(at 3) [4]=127.0.0.1:$(at 4))
start_worker() { # N NAME FILE
    "$SHOAL_BIN" worker --name "$2" --model "models/$3.gguf" --address "${address[$1]}" --log-level info 2>>"$work/worker$1.log" &
    worker[$1]=$!
}
for n in 1 2; do start_worker $n chat home-chat-m; done
for n in 3 4; do start_worker $n intent home-intent; done
cat >"$work/c.yaml" <<CONFIG
models: [{name: chat, external: true}, {name: intent, external: true}]
discovery:
  workers:
    - {model: chat, address: "${address[1]}"}
    - {model: chat, address: "${address[2]}"}
    - {model: intent, address: "${address[3]}"}
    - {model: intent, address: "${address[4]}"}
CONFIG
start_shoal "$work/c.yaml"
until_ready() {
    for _ in $(seq 1200); do
        [ "$(curl -s "$url/readyz" | grep -o '"state":"ready"' | wc -l)" -ge "$1" ] && return
        sleep 0.05
    done
    fail "not $1 workers are ready: $(curl -s "$url/readyz")"
}
until_ready 4
stream() { # SEED FILE
    curl -sN -m 100 "$url/v1/chat/completions" -H 'cache-control: no-store' -d '{"model":"chat","stream":true,"temperature":1,"seed":'"$1"',"ignore_eos":true,"max_tokens":600,"messages":[{"role":"user","content":"tell me everything"}]}' >"$2"
}
classify() { # TEXT FILE
    curl -s -m 60 -o "$2" -w '%{http_code}\n' "$url/v1/classify" -H 'cache-control: no-store' -d "{\"model\":\"intent\",\"input\":\"$1\"}"
}
said() { sed -n 's/^data: {.*"content":"\(.*\)"}.*/\1/p' "$1" | tr -d '\n'; }
SEEDS='1 2 3 4'
for seed in $SEEDS; do
    stream "$seed" "$work/undisturbed$seed"
    grep -q 'data: \[DONE\]' "$work/undisturbed$seed" || fail "no whole stream: $(tail -c 300 "$work/undisturbed$seed")"
done
[ "$(classify "play jazz" "$work/a")" = 200 ] || fail "no answer: $(cat "$work/a")"

# ---- stopped with streams at both, and asked before anybody can have seen it
for seed in $SEEDS; do
    : >"$work/moved$seed"
    stream "$seed" "$work/moved$seed" &
    clients[$seed]=$!
done
for seed in $SEEDS; do until grep -q content "$work/moved$seed"; do sleep 0.005; done; done
kill -STOP "${worker[1]}" "${worker[3]}"
asked=()
for n in $(seq 8); do
    classify "play jazz number $n" "$work/answer$n" >"$work/code$n" &
    asked+=($!)
done
wait "${clients[@]}" "${asked[@]}"
for seed in $SEEDS; do
    grep -q 'data: \[DONE\]' "$work/moved$seed" || fail "a stream broke: $(tail -c 300 "$work/moved$seed")"
    [ "$(said "$work/moved$seed")" = "$(said "$work/undisturbed$seed")" ] || fail "stream $seed is another"
done
for n in $(seq 8); do [ "$(cat "$work/code$n")" = 200 ] || fail "a unary call: $(cat "$work/code$n" "$work/answer$n")"; done
moved=$(curl -s "$url/metrics" | awk '/^shoal_moves_total\{/ { n += $2 } END { print n + 0 }')
[ "$moved" -ge 1 ] || fail "no call has moved"
grep -q 'event=worker_silent' "$log" || fail "the log does not say that a worker is silent"

# ---- no new call waits for it: of each replica none is left that runs, once these are answered
for n in $(seq 6); do
    [ "$(classify "stop the music $n" "$work/a")" = 200 ] || fail "while one is stopped: $(cat "$work/a")"
done
for _ in $(seq 200); do
    left=$(curl -s "$url/metrics" | awk '/^shoal_worker_calls_in_flight\{/ { n += $2 } END { print n + 0 }')
    [ "$left" = 0 ] && break
    sleep 0.05
done
[ "$left" = 0 ] || fail "$left calls wait for a worker that is stopped"

# ---- it goes on, and serves again
kill -CONT "${worker[1]}" "${worker[3]}"
until_ready 4
kill -STOP "${worker[2]}" "${worker[4]}"
[ "$(classify "play jazz again" "$work/a")" = 200 ] || fail "the one that was stopped does not serve: $(cat "$work/a")"
stream 1 "$work/again"
[ "$(said "$work/again")" = "$(said "$work/undisturbed1")" ] || fail "its stream is another: $(tail -c 300 "$work/again")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the gateway exits with $stopped"
echo "$moved calls moved"
