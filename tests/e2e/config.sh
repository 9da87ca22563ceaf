#!/usr/bin/env bash
# A configuration that cannot work is refused before a worker starts, with file, line and field.
source "$(dirname "$0")/lib.sh"
models=$PWD/models
home="manifest: $models/models.json
models: [{name: home-intent}, {name: home-embed}, {name: home-chat-s}]
pipelines:
  - name: p
    stages:
"
n=0

# refused WORDS CODE ARGS...: the file c.yaml is refused with these words, and nothing was started.
refused() {
    local words=$1 code=$2
    shift 2
    (cd "$work" && timeout 20 "$SHOAL_BIN" serve -c c.yaml --port 0 "$@" >"$work/out" 2>"$log")
    local rc=$?
    [ $rc -eq "$code" ] || fail "exit $rc, wanted $code ($*): $(cat "$log" "$work/c.yaml")"
    grep -qF "shoal serve: $words" "$log" || fail "no '$words' in: $(cat "$log")"
    grep -q 'component=\(agent\|worker\|gateway\)' "$log" && fail "something was started: $(cat "$log")"
    [ "${1:-}" = --check ] && (cd "$work" && "$SHOAL_BIN" config check c.yaml >"$work/out" 2>&1) &&
        fail "shoal config check takes what serve refuses: $words"
    [ "${1:-}" != --check ] || grep -qF "shoal config: $words" "$work/out" || fail "shoal config check says: $(cat "$work/out")"
    n=$((n + 1))
}
both() { refused "$1" 2 && refused "$1" 1 --check; }

echo "$home      - {name: a, kind: classify, model: home-embed}" >"$work/c.yaml"
both "c.yaml:6: pipelines[0].stages[0].model: 'home-embed' is a model to embed"
echo "$home      - {name: a, kind: generate, model: home-intent}" >"$work/c.yaml"
both "c.yaml:6: pipelines[0].stages[0].model: 'home-intent' is a model to classify"
echo "$home      - {name: a, kind: classify, model: home-intent}
      - {name: b, kind: generate, model: home-chat-s, when: [{stage: a, label: [iot_hue_lightof]}]}" >"$work/c.yaml"
both "c.yaml:7: pipelines[0].stages[1].when[0].label[0]: no label of 'home-intent' is 'iot_hue_lightof'; did you mean 'iot_hue_lightoff'?"
sed -i "s/iot_hue_lightof/'iott_*'/" "$work/c.yaml"
both "c.yaml:7: pipelines[0].stages[1].when[0].label[0]: no label of 'home-intent' matches 'iott_*'"
cp -r tests/data/hf/llama-gqa "$work/broken" # without a template it would get the default one
echo '{% if %}' >"$work/broken/chat_template.jinja"
echo "models: [{name: m, path: broken}]
pipelines: [{name: p, stages: [{name: a, kind: generate, model: m}]}]" >"$work/c.yaml"
both "c.yaml:2: pipelines[0].stages[0].model: 'm' has no chat template"

# Who moderates: a classifier of the file, and labels that it has.
moderates() { echo "models: [{name: home-intent}, {name: home-embed}]
manifest: $models/models.json
moderation: $1" >"$work/c.yaml"; }
moderates "{safe: [alarm_set]}"
both "c.yaml:3: moderation: 'model' is required"
moderates "{model: guard}"
both "c.yaml:3: moderation.model: 'guard' is not among the models of this file"
moderates "{model: home-embed}"
both "c.yaml:3: moderation.model: 'home-embed' is a model to embed, and this needs one to classify"
moderates "{model: home-intent, safe: [alarm_set, harmless]}"
both "c.yaml:3: moderation.safe[1]: 'home-intent' has no label 'harmless'"
moderates "{model: home-intent, min_score: 2}"
both "c.yaml:3: moderation.min_score: "

# Whence models may come while it serves.
library() { echo "models: [{name: home-intent}]
manifest: $models/models.json
library: $1" >"$work/c.yaml"; }
library "{fetch_from: [huggingface.co, 'https://hf.co']}"
both "c.yaml:3: library.fetch_from[1]: 'https://hf.co' is no host (example: huggingface.co)"
library "{hub: huggingface.co}"
both "c.yaml:3: library.hub: 'huggingface.co' is no address (example: https://hub.lan)"
library "{load: maybe}"
both "c.yaml:3: library.load: 'maybe' is none of on, off"
library "{keep_alive_s: 0}"
both "c.yaml:3: library.keep_alive_s: "

# To which types matrices may be brought.
echo "models:
  - {name: m, path: $models/home-chat-s.gguf, regroup: q8_0}" >"$work/c.yaml"
both "c.yaml:2: models[0].regroup: 'q8_0' is none of off, s8_64, s8_128, s8_256, s4_64, s4_128"

# The cache by likeness: whom it names, and whether they can do it.
near() { echo "models: [{name: home-intent}, {name: home-embed}, {name: home-chat-s}]
manifest: $models/models.json
cache:
  semantic: $1" >"$work/c.yaml"; }
near "{model: home-embed}"
both "c.yaml:4: cache.semantic: 'of' is required"
near "{model: home-intent, of: [home-chat-s]}"
both "c.yaml:4: cache.semantic.model: 'home-intent' is a model to classify, and this needs one to embed"
near "{model: home-embed, of: [home-chat-x]}"
both "c.yaml:4: cache.semantic.of[0]: 'home-chat-x' is no route, pipeline, ensemble or model of this file"
near "{model: home-embed, of: [home-chat-s], verify: rules}"
both "c.yaml:4: cache.semantic.verify: "
near "{model: home-embed, of: [home-chat-s], verify: {model: home-chat-s}}"
both "c.yaml:4: cache.semantic.verify.model: 'home-chat-s' is a model to generate, and this needs one to rerank"
near "{model: home-embed, of: [home-chat-s], verify: {min: 2}}"
both "c.yaml:4: cache.semantic.verify: 'model' is required"

# A function whose arguments could not be held to its schema.
echo "$home      - name: a
        kind: generate
        model: home-chat-s
        tools:
          - name: f
            parameters: {properties: {a: {type: array, uniqueItems: true}}}" >"$work/c.yaml"
both 'c.yaml:11: pipelines[0].stages[0].tools[0].parameters: tools/0/function/parameters: at "#/properties/a/uniqueItems"'

# A folder that happens to have a model's name is not that model.
ln -s "$PWD/tests/data/hf/llama-gqa" "$work/my-chat"
echo "models:
  - name: my-chat" >"$work/c.yaml"
both "c.yaml:2: models[0].name: 'my-chat' has no path and is not in"
echo "models:
  - name: my-chat
    path: my-chatt" >"$work/c.yaml"
both "c.yaml:3: models[0].path: "
echo "models: [{name: home-intent}]
tls:
  cert: c.yaml
  key: c.yaml" >"$work/c.yaml"
both "c.yaml:2: tls: c.yaml: cannot be used as the TLS certificate: it is no PEM file of one"
grep -q 'error:[0-9A-F]\{8\}' "$log" && fail "an OpenSSL code: $(cat "$log")"
printf 'models: [{name: home-intent}]\n---\nlisten: x\n' >"$work/c.yaml"
both "c.yaml:2: a second document begins here"
printf 'models:\n\t- {name: home-intent}\n' >"$work/c.yaml"
both "c.yaml:2: not YAML: a tab indents this line; use spaces"
printf 'models: [{name: home-intent}]\ndeadline_ms: 60s\n' >"$work/c.yaml"
both "c.yaml:2: deadline_ms: must be a whole number from 0 to 86400000, in digits alone, not '60s'"
printf 'models: [{name: home-intent}]\nretrieval: {max_document_mb: 951}\n' >"$work/c.yaml"
both "c.yaml:2: retrieval.max_document_mb: must be a whole number from 1 to 950, in digits alone, not '951'"

# What only a look into every file finds; a running server leaves it to the worker, and says where.
zeros=$(printf '0%.0s' $(seq 64))
echo "models:
  - {name: home-intent, path: $models/home-intent.gguf}
  - {name: odd, path: $models/home-embed.gguf, sha256: '$zeros'}" >"$work/c.yaml"
refused "c.yaml:3: models[1]: $models/home-embed.gguf: its SHA-256 is" 1 --check
start_shoal "$work/c.yaml"
grep -q "c.yaml:3: models\[1\]: odd/0 cannot serve: .*SHA-256" "$log" || fail "no line for a wrong digest: $(cat "$log")"
stop_shoal

misfit() { # KEY MODEL SENTENCE
    echo "models:
  - {name: odd, path: $2, $1}" >"$work/c.yaml"
    refused "c.yaml:2: models[0]: $3" 1 --check
}
misfit "kv_type: f16" "$models/home-embed.gguf" "this model keeps no keys and values from step to step"
misfit "kv_type: q8_0" "$PWD/tests/data/hf/lfm2-conv" "this model's convolutions"
tiny=$PWD/tests/fuzz/seeds/fuzz_model_gguf/family-llama2c
misfit "regroup: s8_128" "$tiny" "$tiny: none of its matrices can be regrouped"
misfit "regroup: s8_128" "$PWD/tests/data/sensors/trees" "$PWD/tests/data/sensors/trees: trees have no matrices"

"$SHOAL_BIN" serve --check -c shoal.yaml >"$work/out" 2>"$log" || fail "shoal.yaml is refused: $(cat "$log")"
grep -q '^ok: 5 models, 1 pipeline' "$work/out" || fail "what --check says: $(cat "$work/out")"

# The same as a command, with notes; and what a file comes to, which reads as the same again.
"$SHOAL_BIN" config check shoal.yaml >"$work/out" 2>"$log" || fail "shoal config check: $(cat "$log")"
grep -q '^shoal.yaml: OK (5 models, 1 pipeline, 0 API keys' "$work/out" || fail "config check: $(cat "$work/out")"
[ -s "$log" ] && fail "notes about the shipped file: $(cat "$log")"
# A copy of it, in a folder that has no models: it is started from there, named with and without ./, and from elsewhere.
mkdir "$work/copied" && cp shoal.yaml "$work/copied/"
for at in "copied:" "copied:shoal.yaml" "copied:./shoal.yaml" ".:copied/shoal.yaml"; do
    # shellcheck disable=SC2086 # no file is named: the default is taken
    (cd "$work/${at%%:*}" && "$SHOAL_BIN" config check ${at#*:}) >"$work/out" 2>"$log" || fail "a copy of shoal.yaml, $at: $(cat "$log")"
    grep -q 'shoal.yaml: OK (5 models' "$work/out" || fail "a copy of shoal.yaml, $at: $(cat "$work/out")"
done
digest=$(printf secret | sha256sum | cut -d' ' -f1)
{ shipped; echo "api_keys:
  - {name: old, sha256: $digest, expires: 2026-01-01, models: [home, 'home-chta*']}"; } >"$work/c.yaml"
last=$(wc -l <"$work/c.yaml")
"$SHOAL_BIN" config check "$work/c.yaml" >"$work/out" 2>"$log" || fail "notes are errors: $(cat "$log")"
grep -q "^note: .*c.yaml:$last: api_keys\[0\].expires: the key old has ended" "$log" || fail "no note of the end: $(cat "$log")"
grep -q "^note: .*c.yaml:$last: api_keys\[0\].models\[1\]: no model, .* matches 'home-chta\*'" "$log" || fail "no note of the name: $(cat "$log")"
"$SHOAL_BIN" config check --json "$work/c.yaml" | grep -q '"right":true,"error":null,"notes":\["' || fail "as JSON"
"$SHOAL_BIN" config check --json "$work/nothing.yaml" >"$work/out" 2>"$log" && fail "a file that is not there is right"
grep -q '"right":false,"error":".*No such file' "$work/out" || fail "as JSON: $(cat "$work/out")"
# All that is wrong is told, in the order of lines; what depends on a wrong section is not.
echo "listen: here
models: [{name: home-intent, path: none.gguf}, {name: home-chat-x}]
manifest: $models/models.json
aliases: {a: b}" >"$work/wrong.yaml"
"$SHOAL_BIN" config check "$work/wrong.yaml" >/dev/null 2>"$log" && fail "a wrong file is right"
[ "$(grep -o 'wrong.yaml:[0-9]*: [a-z]*' "$log" | tr '\n' ' ')" = "wrong.yaml:1: listen wrong.yaml:2: models wrong.yaml:4: aliases " ] ||
    fail "all that is wrong: $(cat "$log")"
"$SHOAL_BIN" config check --json "$work/wrong.yaml" 2>/dev/null | grep -q '"right":false,"error":".*:1: listen.*"errors":\[".*:1: listen.*:4: aliases' || fail "as JSON"
echo "models: [{name: home-chat-x}, {name: home-intent}, {name: home-chat-y}]
manifest: $models/models.json" >"$work/wrong.yaml"
"$SHOAL_BIN" config check "$work/wrong.yaml" >/dev/null 2>"$log" && fail "models that are nowhere"
[ "$(grep -c 'has no path and is not in' "$log")" -eq 2 ] || fail "models that are nowhere: $(cat "$log")"
"$SHOAL_BIN" config show "$work/c.yaml" >"$work/shown.yaml" || fail "config show"
grep -q "$digest" "$work/shown.yaml" && fail "a digest is shown"
grep -q '^  max_streams: 128$' "$work/shown.yaml" || fail "no default of the server: $(head -20 "$work/shown.yaml")"
sed "s/(hidden)/$digest/" "$work/shown.yaml" >"$work/again.yaml"
"$SHOAL_BIN" config check "$work/again.yaml" >/dev/null 2>"$log" || fail "what is shown is refused: $(cat "$log")"
"$SHOAL_BIN" config show "$work/again.yaml" | cmp - "$work/shown.yaml" || fail "what is shown is not shown again"
"$SHOAL_BIN" config show --json "$work/c.yaml" | grep -q '^{"listen":"127.0.0.1:8080",' || fail "config show --json"

# The example of aliases in docs/configuration.md, and the models that it names.
{ echo "manifest: $models/models.json"; sed -n '/^models: # the targets/,/^```$/p' docs/configuration.md | grep -v '^```'; } >"$work/c.yaml"
grep -q '^  whisper-1: home-ears$' "$work/c.yaml" || fail "no example of aliases: $(cat "$work/c.yaml")"
"$SHOAL_BIN" serve --check -c "$work/c.yaml" >"$work/out" 2>&1 || fail "the example of aliases: $(cat "$work/out")"

# A worker that comes back as another model than the file that was looked at.
ln -s "$models/home-intent.gguf" "$work/m.gguf"
echo "models: [{name: m, path: m.gguf}]
pipelines: [{name: p, stages: [{name: a, kind: classify, model: m}]}]" >"$work/c.yaml"
start_shoal "$work/c.yaml"
ln -sf "$models/home-embed.gguf" "$work/m.gguf"
kill -9 "$(curl -s "$url/readyz" | grep -o '"pid":[0-9]*' | cut -d: -f2)"
for _ in $(seq 400); do grep -q model_does_not_fit "$log" && break; sleep 0.05; done
grep -q "model_does_not_fit replica=m/0 reason=\".*c.yaml:2: pipelines\[0\].stages\[0\].model: 'm' is a model to embed" "$log" ||
    fail "a worker of another task came back unnoticed: $(tail -3 "$log")"
stop_shoal
echo "$n refusals, each with its line"
