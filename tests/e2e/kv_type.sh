#!/usr/bin/env bash
# Keys and values as int8: more pages in the same memory, sessions and restarts as ever, and refusals that say why.
. "$(dirname "$0")/lib.sh"

cat >"$work/two.yaml" <<EOF2
models:
  - {name: floats, path: $PWD/models/home-chat-s.gguf, kv_mb: 8}
  - {name: int8, path: $PWD/models/home-chat-s.gguf, kv_mb: 8, kv_type: q8_0}
sessions: {path: $work/sessions.db, key_file: $work/sessions.key}
EOF2
start_shoal "$work/two.yaml"

json="content-type: application/json"
pages() { # MODEL; its worker says so at the next look
    local n=
    for _ in $(seq 100); do
        n=$(curl -sS "$url/metrics" | sed -nE "s/^shoal_worker_kv_pages\{model=\"$1\".*\} ([0-9]+)$/\1/p")
        [ -n "$n" ] && break
        sleep 0.1
    done
    echo "${n:-0}"
}
for _ in $(seq 200); do
    few=$(pages floats) many=$(pages int8)
    [ -n "$few" ] && [ -n "$many" ] && break
    sleep 0.05
done
[ "$many" -gt $((few * 7 / 4)) ] && [ "$many" -le $((few * 2)) ] || fail "$many pages of int8, $few of floats"

system="You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = off\nfan.attic 'Attic Fan' = on"
ask() { # MODEL
    curl -sS "$url/v1/chat/completions" -H "$json" -H "cache-control: no-cache" -d "{\"model\":\"$1\",\"max_tokens\":60,\"temperature\":0,
        \"messages\":[{\"role\":\"system\",\"content\":\"$system\"},{\"role\":\"user\",\"content\":\"Turn on the kitchen light.\"}]}" |
        python3 -c 'import json,re,sys; d=json.load(sys.stdin); print(re.sub("call_[0-9a-f]*", "", json.dumps(d["choices"], sort_keys=True)))'
}
want=$(ask floats)
[ -n "$want" ] || fail "no answer"
for _ in 1 2 3; do # the second and third read their prompt from the prefix cache
    got=$(ask int8)
    [ "$got" = "$want" ] || fail "int8 says $got, floats say $want"
done

# Behind a conversation whose pages are kept, and after the worker died, the reply is the same.
speak() { # -> the reply's text
    curl -sS "$url/v1/chat/completions" -H "$json" -d "{\"model\":\"int8\",\"max_tokens\":40,\"temperature\":0,\"session\":\"$1\",
        \"messages\":[{\"role\":\"user\",\"content\":\"$2\"}]}" |
        python3 -c 'import json,re,sys; print(re.sub("call_[0-9a-f]*", "", json.dumps(json.load(sys.stdin)["choices"], sort_keys=True)))'
}
speak a "Turn on the kitchen light." >/dev/null
speak b "Turn on the kitchen light." >/dev/null
first=$(speak a "And the attic fan?")
pid=$(pgrep -P "$server" -f 'name int8' | head -1)
[ -n "$pid" ] || fail "no worker of int8"
tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -- '--options kv_type=q8_0' || fail "the worker was not told: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
kill -9 "$pid"
for _ in $(seq 200); do
    second=$(speak b "And the attic fan?" 2>/dev/null)
    [ -n "$second" ] && break
    sleep 0.05
done
[ -n "$first" ] && [ "$first" = "$second" ] || fail "before the death: $first; behind it: $second"

"$SHOAL_BIN" load "$PWD/models/home-chat-m.gguf" --name later --kv-type q8_0 --kv-mb 8 --server "$url" >"$work/out" 2>&1 ||
    fail "load: $(cat "$work/out")"
for _ in $(seq 200); do # a worker says its figures a little after it is ready
    [ -n "$(pages later)" ] && break
    sleep 0.05
done
[ "$(pages later || echo 0)" -gt 0 ] || fail "no pages of what was loaded"
curl -sS "$url/v1/models/load" -H "$json" -d '{"model":"home-chat-m","kv_type":"q3"}' | grep -q "kv_type: 'q3' is none of" || fail "q3 was not refused"

# Regrouped weights likewise: what is loaded says so, the same file without is another model, and a wrong type is named.
"$SHOAL_BIN" load "$PWD/models/home-chat-s.gguf" --name wide --regroup s8_128 --kv-mb 8 --server "$url" >"$work/out" 2>&1 ||
    fail "load --regroup: $(cat "$work/out")"
"$SHOAL_BIN" load "$PWD/models/home-chat-s.gguf" --name narrow --kv-mb 8 --server "$url" >"$work/out" 2>&1 || fail "load: $(cat "$work/out")"
for pair in wide:S8_128 narrow:Q8_0; do
    curl -sS "$url/v1/models/${pair%:*}" | grep -q "\"quantisation\":\"${pair#*:}\"" || fail "$pair: $(curl -sS "$url/v1/models/${pair%:*}")"
done
"$SHOAL_BIN" load "$PWD/models/home-chat-s.gguf" --name odd --regroup q8_0 --server "$url" >"$work/out" 2>&1 && fail "q8_0 was taken"
grep -q "regroup: 'q8_0' is none of" "$work/out" || fail "load: $(cat "$work/out")"
stop_shoal
[ "$stopped" = 0 ] || fail "the server ended with $stopped"

"$SHOAL_BIN" run "$PWD/models/home-chat-s.gguf" "hello" --kv-type q9 >"$work/out" 2>&1 && fail "q9 was taken"
grep -q 'f32, f16 or q8_0' "$work/out" || fail "run: $(cat "$work/out")"
"$SHOAL_BIN" bench "$PWD/tests/data/hf/lfm2-conv" -p 4 -n 1 --kv-type q8_0 >"$work/out" 2>&1 && fail "convolutions were taken"
grep -q 'take f16' "$work/out" || fail "bench: $(cat "$work/out")"
"$SHOAL_BIN" classify "$PWD/models/home-intent.gguf" "hello" --kv-type f16 >"$work/out" 2>&1 && fail "a classifier took it"
grep -q 'keeps no keys and values' "$work/out" || fail "classify: $(cat "$work/out")"

"$SHOAL_BIN" score "$PWD/tests/data/sensors/trees" "$work/none.csv" --regroup s8_128 >"$work/out" 2>&1 && fail "trees took it"
grep -q 'trees have no matrices' "$work/out" || fail "score: $(cat "$work/out")"

"$SHOAL_BIN" embed "$PWD/models/home-embed.gguf" "hello" >"$work/narrow" || fail "embed"
"$SHOAL_BIN" embed "$PWD/models/home-embed.gguf" "hello" --regroup s8_128 >"$work/wide" || fail "embed --regroup"
cmp -s "$work/narrow" "$work/wide" && fail "--regroup changed nothing"
"$SHOAL_BIN" embed "$PWD/models/home-embed.gguf" "hello" --regroup q8_0 >"$work/out" 2>&1 && fail "q8_0 was taken"
grep -q 's8_128' "$work/out" || fail "embed: $(cat "$work/out")"
