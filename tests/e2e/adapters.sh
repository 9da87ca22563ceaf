#!/usr/bin/env bash
# Adapters over HTTP and on the command line: one server, two adapters and none at once, each with its own answers.
source "$(dirname "$0")/lib.sh"
data=$PWD/tests/data

cat >"$work/a.yaml" <<END
cache: {mb: 4}
models:
  - name: llama
    path: $data/hf/llama-gqa
    threads: 2
    adapters:
      - {name: one, path: $data/adapters/llama-one}
      - {name: two, path: $data/adapters/llama-two}
  - name: intent
    path: $data/hf/bert-intent
    threads: 1
    adapters: [{name: mine, path: $data/adapters/bert-intent}]
END
"$SHOAL_BIN" serve -c "$work/a.yaml" --check >/dev/null || fail "--check"
start_shoal "$work/a.yaml"

# ask MODEL OUT: sixteen greedy tokens.
ask() {
    curl -s "$url/v1/completions" -d "{\"model\":\"$1\",\"prompt\":\"hello there\",\"max_tokens\":16,\"temperature\":0}" \
        >"$2" || fail "no answer from $1"
}
text() { grep -o '"text":"\([^"\\]\|\\.\)*"' "$1"; }

for round in 1 2; do # the second is answered from the cache
    pids=()
    for m in llama llama:one llama:two; do
        ask $m "$work/$m.$round" &
        pids+=($!)
    done
    wait "${pids[@]}"
done
for m in llama llama:one llama:two; do
    [ -n "$(text "$work/$m.1")" ] || fail "$m: $(cat "$work/$m.1")"
    [ "$(text "$work/$m.1")" = "$(text "$work/$m.2")" ] || fail "$m answers otherwise the second time"
    grep -q "\"model\":\"$m\"" "$work/$m.1" || fail "the answer does not name $m: $(cat "$work/$m.1")"
done
[ "$(text "$work/llama.1")" != "$(text "$work/llama:one.1")" ] || fail "adapter one changes nothing"
[ "$(text "$work/llama:one.1")" != "$(text "$work/llama:two.1")" ] || fail "adapters one and two answer alike"

# The command line, with the same adapter, says the same.
cli=$("$SHOAL_BIN" run "$data/hf/llama-gqa" "hello there" --max-tokens 16 --temp 0 --json \
    --adapter "$data/adapters/llama-one" | grep -o '"text":"\([^"\\]\|\\.\)*"')
[ "$cli" = "$(text "$work/llama:one.1")" ] || fail "the command line says $cli, the server $(text "$work/llama:one.1")"
"$SHOAL_BIN" run "$data/hf/llama-gqa" hi --adapter "$data/adapters/bert-intent" 2>"$work/err" && fail "a foreign adapter ran"
grep -q 'has no place in the model llama-gqa' "$work/err" || fail "$(cat "$work/err")"
strong=$("$SHOAL_BIN" classify "$data/hf/bert-intent" "hello there" --json --adapter "$data/adapters/bert-intent:2")
[ "$strong" != "$("$SHOAL_BIN" classify "$data/hf/bert-intent" "hello there" --json)" ] || fail "classify"

# Classifiers, the list of models, and what is not there.
classify() { curl -s "$url/v1/classify" -d "{\"model\":\"$1\",\"input\":\"hello there\"}" | sed 's/"model":"[^"]*"//'; }
[ "$(classify intent)" != "$(classify intent:mine)" ] || fail "the classifier's adapter changes nothing"
[ "$(classify intent)" = "$(classify intent)" ] || fail "classify"
curl -s "$url/v1/models" | grep -q '"id":"llama:one"[^}]*"parent":"llama"' || fail "$(curl -s "$url/v1/models")"
curl -s "$url/v1/models/llama:two" | grep -q '"id":"llama:two".*"parent":"llama"' || fail "$(curl -s "$url/v1/models/llama:two")"
code=$(curl -s -o "$work/out" -w '%{http_code}' "$url/v1/models/llama:three")
[ "$code" = 404 ] || fail "the description of an unknown adapter is a $code"
code=$(curl -s -o "$work/out" -w '%{http_code}' "$url/v1/completions" -d '{"model":"llama:three","prompt":"a"}')
[ "$code" = 404 ] || fail "an unknown adapter is a $code"
grep -q "has no adapter 'three'; it has llama:one, llama:two" "$work/out" || fail "$(cat "$work/out")"
code=$(curl -s -o "$work/out" -w '%{http_code}' "$url/v1/completions" -d '{"model":"nobody:one","prompt":"a"}')
[ "$code" = 404 ] || fail "an unknown model with an adapter is a $code"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"

# An adapter of another model is found before the server starts.
sed -i "s|adapters/llama-two|adapters/bert-intent|" "$work/a.yaml"
"$SHOAL_BIN" serve -c "$work/a.yaml" --check >/dev/null 2>"$work/err" && fail "--check accepts an adapter of another model"
grep -q 'models\[0\]' "$work/err" && grep -q 'has no place in the model' "$work/err" || fail "$(cat "$work/err")"
echo "two adapters and none at once"
