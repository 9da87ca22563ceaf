#!/usr/bin/env bash
# Replicas by load over two machines: requests wait, and the gateway places a second replica on the other machine; the
# load ends, and one is left. Streams that run meanwhile have the bytes of undisturbed ones.
source "$(dirname "$0")/machines.bash"
model=$PWD/models/home-chat-m.gguf

stream() { # PROMPT TOKENS: what was said, without when, and how it ended
    local raw=$work/raw.$BASHPID
    curl -s -m 250 -H "cache-control: no-cache" "$url/v1/chat/completions" -d "{\"model\":\"chat\",\"stream\":true,\"max_tokens\":$2,
        \"temperature\":1,\"seed\":7,\"ignore_eos\":true,\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}]}" >"$raw" || echo "curl: exit $?"
    sed -n 's/.*"content":"\(\([^"\\]\|\\.\)*\)".*/\1/p' "$raw" | tr -d '\n'
    grep -o '"finish_reason":"[a-z_]*"\|\[DONE\]\|"error".*' "$raw"
}
serves() { [ "$(curl -s "$url/readyz" | grep -o '"id":"[a-z]*/chat/[0-9]*","model":"chat","state":"ready"' | wc -l)" = "$1" ]; }
wants() { curl -s "$url/metrics" | grep -qF "shoal_model_replicas_wanted{model=\"chat\"} $1"; }
prompts=("turn on the kitchen light" "is the front door locked?" "make it warmer" "good night" "open the blinds")

printf 'models: [{name: chat, max_batch: 2, threads: 1, path: %s}]\n' "$model" >"$work/alone.yaml"
start_shoal "$work/alone.yaml"
for i in "${!prompts[@]}"; do stream "${prompts[$i]}" 600 >"$work/want.$i"; done
stop_shoal

make_ca
cat >"$work/c.yaml" <<YAML
cluster: {listen: "$control", name: boss, state: $gw}
cache: {mb: 0}
deadline_ms: 240000 # of a slow machine
models:
  - {name: chat, max_batch: 2, threads: 1, path: $model, replicas: {min: 1, max: 2, wait_ms: 50, idle_s: 1},
     place: {nodes: [pi, attic]}}
YAML
start_shoal "$work/c.yaml"
join pi
join attic
until_true "one serves" serves 1

ask_on() {
    while [ ! -e "$work/enough" ]; do
        stream "${prompts[$1]}" 600 >"$work/got.$1"
        cmp -s "$work/got.$1" "$work/want.$1" || { cp "$work/got.$1" "$work/bad"; return; }
        echo >>"$work/answered"
    done
}
for i in "${!prompts[@]}"; do
    ask_on "$i" &
    asking+=($!)
done
until_true "a second one is wanted" wants 2
until_true "both machines serve" serves 2
curl -s "$url/readyz" | grep -q '"id":"pi/chat/0"' && curl -s "$url/readyz" | grep -q '"id":"attic/chat/0"' ||
    fail "not one on each: $(curl -s "$url/readyz")"
"$SHOAL_BIN" plan "$work/c.yaml" --server "$url" --json >"$work/plan" || fail "plan: $?"
grep -q '"ranges":\[{"model":"chat","min":1,"max":2,"replicas":2,"room":2}\]' "$work/plan" &&
    grep -q '"stopping":\[\]' "$work/plan" || fail "the plan: $(cat "$work/plan")"
touch "$work/enough"
wait "${asking[@]}"
asking=()

rm "$work/enough"
ask_on 0 & # what one machine carries
asking=($!)
until_true "one is wanted" wants 1
until_true "one is left" serves 1
touch "$work/enough"
wait "${asking[@]}"
asking=()
[ -e "$work/bad" ] && fail "another answer: $(cat "$work/bad")"
[ "$(wc -l <"$work/answered")" -ge 5 ] || fail "$(wc -l <"$work/answered") answers"
grep -q 'component=scale event=step.* model=chat from=2 to=1' "$log" || fail "no line: $(grep component=scale "$log")"
echo "ok"
