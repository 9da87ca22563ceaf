#!/usr/bin/env bash
# Clients of streams are killed while their requests wait for the one place of a model: the requests are gone while the one
# that runs is still at it, and before their turn comes.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
model=$work/slow.gguf
"$SHOAL_BIN" debug make-model --shape llama-135m --type q4_0 -c 8192 -o "$model" >/dev/null 2>&1 || fail "make-model"
cat >"$work/shoal.yaml" <<END_YAML
listen: 127.0.0.1:0
deadline_ms: 300000
drain_ms: 100
models:
  - {name: slow, path: $model, max_batch: 1, kv_mb: 200}
END_YAML
start_shoal "$work/shoal.yaml"
metric() { curl -s "$url/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
in_flight() { echo $(($(metric shoal_requests_in_flight) - 1)); } # without the one that asks
slow='{model="slow",replica="slow/0"}'
ask() { # FILE MAX_TOKENS: in the background; its pid is $!
    curl -sN -m 200 "$url/v1/chat/completions" -d '{"model":"slow","stream":true,"seed":'$RANDOM',"temperature":1,"ignore_eos":true,"max_tokens":'"$2"',"messages":[{"role":"user","content":"tell me everything"}]}' >"$1" &
}

ask "$work/held" 7000
held=$!
for _ in $(seq 600); do grep -q '"content":"[^"]' "$work/held" && break; sleep 0.05; done
grep -q '"content":"[^"]' "$work/held" || fail "the one that runs does not begin: $(cat "$work/held")"
waiting=()
for i in $(seq 24); do
    ask "$work/waits.$i" 2000 # they have a turn of 32 tokens now and then
    waiting+=($!)
done
for _ in $(seq 600); do [ "$(metric "shoal_worker_queue$slow")" = 24 ] && break; sleep 0.05; done
[ "$(metric "shoal_worker_queue$slow")" = 24 ] || fail "$(metric "shoal_worker_queue$slow") wait"
[ "$(in_flight)" = 25 ] || fail "$(in_flight) requests"
end "${waiting[@]}"
for _ in $(seq 600); do [ "$(in_flight)" = 1 ] && break; sleep 0.05; done
[ "$(in_flight)" = 1 ] || fail "$(in_flight) requests, of whom one has a client"
for _ in $(seq 100); do [ "$(metric "shoal_worker_queue$slow")" = 0 ] && break; sleep 0.05; done
[ "$(metric "shoal_worker_queue$slow")" = 0 ] || fail "the worker keeps $(metric "shoal_worker_queue$slow")"
grep -q 'data: \[DONE\]' "$work/held" && fail "the one that runs was over before the others had gone"
# The engine lets those that wait have a turn in a tenth of a second or so. Whose client has left is not waited for until that comes: without
# a look at clients it would be none.
untouched=$(grep -c 'event=request .*code=client_gone .* generated_tokens=0 ' "$log")
[ "$untouched" -ge 3 ] || fail "only $untouched of 24 had gone before a token was made for them"
end "$held"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "24 clients left the queue, $untouched of their requests before a token was made"
