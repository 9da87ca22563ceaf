#!/usr/bin/env bash
# Replicas by load on one machine: requests wait, a second worker starts; the load ends, it leaves. Streams that run
# meanwhile have the bytes of undisturbed ones, and /readyz waits for no worker that the load brings. A model of min 0
# has no worker until somebody asks it, and none again later.
source "$(dirname "$0")/lib.sh"
model=$PWD/models/home-chat-m.gguf

stream() { # PROMPT TOKENS: what was said, without when, and how it ended
    local raw=$work/raw.$BASHPID
    curl -s -m 250 -H "cache-control: no-cache" "$url/v1/chat/completions" -d "{\"model\":\"chat\",\"stream\":true,\"max_tokens\":$2,
        \"temperature\":1,\"seed\":7,\"ignore_eos\":true,\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}]}" >"$raw" || echo "curl: exit $?"
    sed -n 's/.*"content":"\(\([^"\\]\|\\.\)*\)".*/\1/p' "$raw" | tr -d '\n'
    grep -o '"finish_reason":"[a-z_]*"\|\[DONE\]\|"error".*' "$raw"
}
steps() { [ "$(metric "shoal_scale_steps_total{model=\"$1\",why=\"$2\"}")" = "$3" ]; }
metric() { curl -s "$url/metrics" | grep -F "$1 " | cut -d' ' -f2; }
has_log() { grep -q "component=scale event=$1" "$log"; }
readyz() { curl -s -o "$work/readyz" -w '%{http_code}' "$url/readyz"; }
workers_of() { grep -o "\"id\":\"$1/[0-9]*\"" "$work/readyz" | wc -l; }
# Until it is so; /readyz says all the while that the gateway is ready.
until_true() {
    local what=$1
    shift
    for _ in $(seq 900); do
        "$@" && return 0
        [ "$(readyz)" = 200 ] || fail "$what: not ready: $(cat "$work/readyz")"
        sleep 0.2
    done
    fail "$what: never came to pass: $(cat "$work/readyz"); $(grep component=scale "$log" | tail -5)"
}
wants() { [ "$(metric "shoal_model_replicas_wanted{model=\"$1\"}")" = "$2" ]; }
serves() { readyz >/dev/null && [ "$(grep -o "\"id\":\"$1/[0-9]*\",\"model\":\"$1\",\"state\":\"ready\"" "$work/readyz" | wc -l)" = "$2" ] && [ "$(workers_of "$1")" = "$2" ]; }

prompts=("turn on the kitchen light" "is the front door locked?" "make it warmer" "good night" "open the blinds")
printf 'models: [{name: chat, max_batch: 2, threads: 1, path: %s}]\n' "$model" >"$work/alone.yaml"
start_shoal "$work/alone.yaml"
for i in "${!prompts[@]}"; do stream "${prompts[$i]}" 600 >"$work/want.$i"; done
stop_shoal
[ "$(wc -c <"$work/want.0")" -gt 400 ] || fail "alone: $(cat "$work/want.0")"

cat >"$work/c.yaml" <<YAML
manifest: $PWD/models/models.json
cache: {mb: 0}
deadline_ms: 240000 # of a slow machine
models:
  - {name: chat, max_batch: 2, threads: 1, path: $model, replicas: {min: 1, max: 2, wait_ms: 50, idle_s: 1}}
  - {name: home-intent, replicas: {min: 0, max: 1, idle_s: 1}}
  - {name: home-slots, kv_mb: 1048576} # a fixed one, which has what it takes: it leaves room for others
YAML
start_shoal "$work/c.yaml"
serves chat 1 && serves home-intent 0 || fail "at the start: $(cat "$work/readyz")"
wants chat 1 && wants home-intent 0 || fail "wanted: $(curl -s "$url/metrics" | grep wanted)"

# ---- requests wait: one more
ask_on() {
    while [ ! -e "$work/enough" ]; do
        stream "${prompts[$1]}" 600 >"$work/got.$1"
        cmp -s "$work/got.$1" "$work/want.$1" || { cp "$work/got.$1" "$work/bad"; return; }
        echo >>"$work/answered"
    done
}
asking=()
for i in "${!prompts[@]}"; do
    ask_on "$i" &
    asking+=($!)
done
until_true "a second one is wanted" wants chat 2
until_true "it answers" serves chat 2
steps chat waited 1 || fail "$(curl -s "$url/metrics" | grep scale)"
has_log 'step.* model=chat from=1 to=2' || fail "no line of the step: $(grep component=scale "$log")"
touch "$work/enough"
wait "${asking[@]}"

# ---- one stream at a time is what one worker carries: it leaves while that runs
rm "$work/enough"
ask_on 0 &
until_true "one is wanted" wants chat 1
until_true "one is left" serves chat 1
touch "$work/enough"
wait $!
[ -e "$work/bad" ] && fail "another answer: $(cat "$work/bad")"
[ "$(wc -l <"$work/answered")" -ge 5 ] || fail "$(wc -l <"$work/answered") answers"
steps chat idle 1 || fail "$(curl -s "$url/metrics" | grep scale)"

# ---- to none, and back by the first request, which waits for it
models() { curl -s "$url/v1/models" | grep -o '"id":"home-intent"[^}]*'; }
models | grep -q '"state":"resting"' && models | grep -q '"min_replicas":0,"max_replicas":1' || fail "it does not rest: $(models)"
classify() { curl -s -m 60 "$url/v1/classify" -H 'cache-control: no-cache' -d '{"model":"home-intent","input":"turn on the kitchen light"}'; }
classify >"$work/answer"
grep -q '"label":"' "$work/answer" || fail "no answer: $(cat "$work/answer")"
until_true "a step by the first request" steps home-intent called 1 # metrics are a second old at most
until_true "it rests again" serves home-intent 0
until_true "none is wanted" wants home-intent 0

# ---- another range counts without a restart
sed -i 's/min: 1, max: 2, wait_ms: 50/min: 2, max: 2, wait_ms: 50/' "$work/c.yaml"
kill -HUP "$server"
until_true "two by the file" serves chat 2
stop_shoal
[ "$stopped" = 0 ] || fail "exit $stopped"

# ---- what the file says is shown
sed -i '/home-slots/d' "$work/c.yaml"
"$SHOAL_BIN" plan "$work/c.yaml" >"$work/plan" || fail "plan: $?"
grep -q '2 to 2 replicas, by load; there is room for all' "$work/plan" && grep -q '0 to 1 replicas, by load' "$work/plan" ||
    fail "the plan: $(cat "$work/plan")"
printf 'nodes: [{name: pi, cores: 4, memory_mb: 200}]\n' >"$work/pi.yaml"
sed -i 's/min: 2, max: 2/min: 1, max: 9/' "$work/c.yaml"
"$SHOAL_BIN" plan "$work/c.yaml" --nodes "$work/pi.yaml" >"$work/plan" || fail "plan: $?"
grep -q 'room for [0-8] of them: .*its memory is taken (pi)' "$work/plan" || fail "the plan: $(cat "$work/plan")"
echo "ok"
