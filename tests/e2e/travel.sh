#!/usr/bin/env bash
# Models that are folders, and adapters, travel to machines that have nothing: the answers are those of this machine
# alone. A third machine fetches from the second; one whose copy is another file is found out, and is not believed.
source "$(dirname "$0")/machines.bash"
data=$PWD/tests/data

text() { grep -o '"text":"\([^"\\]\|\\.\)*"\|"error".*'; }
ask() {
    curl -s -m 30 "$url/v1/completions" -d "{\"model\":\"$1\",\"prompt\":\"hello there\",\"max_tokens\":16,\"temperature\":0}" | text
}
vector() { curl -s -m 30 "$url/v1/embeddings" -d '{"model":"embed","input":"hello there"}' | grep -o '"embedding":\[[^]]*\]'; }
# shellcheck disable=SC2329
ready() { curl -s "$url/readyz" | grep -q "\"id\":\"$1\",\"model\":\"[a-z]*\",\"state\":\"ready\""; }
# shellcheck disable=SC2329
attached() { "$SHOAL_BIN" nodes --server "$url" --json | grep -q "\"name\":\"$1\"[^}]*\"files\":[1-9]"; }
models() {
    cat <<YAML
models:
  - name: llama
    path: $data/hf/llama-gqa
    threads: 1
    adapters:
      - {name: one, path: $data/adapters/llama-one}
      - {name: two, path: $data/adapters/llama-two}
    $1
  - {name: embed, path: $data/hf/minilm-embed, threads: 1, ${2:-}}
YAML
}

(echo "cache: {mb: 0}"; models "") >"$work/alone.yaml"
start_shoal "$work/alone.yaml"
for m in llama llama:one llama:two; do ask $m >"$work/want.$m"; done
vector >"$work/want.vector"
stop_shoal
[ "$(cat "$work/want.llama")" != "$(cat "$work/want.llama:one")" ] || fail "the adapter changes nothing"

"$SHOAL_BIN" ca init --state "$gw" >/dev/null
place='place: {nodes: [pi, attic]}'
(echo "cluster: {listen: \"127.0.0.1:0\", name: boss, state: $gw}"; echo "cache: {mb: 0}"
    models "$place" "$place") >"$work/c.yaml"
start_shoal "$work/c.yaml"
control=127.0.0.1:$(sed -n 's/.*component=control event=listening.* port=\([0-9]*\).*/\1/p' "$log" | head -1)
join pi
until_true "pi has the folder and the adapters" ready pi/llama/0
until_true "pi has the other" ready pi/embed/0
until_true "it answers" sh -c "curl -s '$url/v1/models' | grep -q '\"id\":\"llama:two\"'"
check() {
    for m in llama llama:one llama:two; do
        ask $m | cmp -s - "$work/want.$m" || fail "$1: $m: $(ask $m), alone: $(cat "$work/want.$m")"
    done
    vector | cmp -s - "$work/want.vector" || fail "$1: embed"
}
check "pi answers otherwise"
[ -f "$(echo "$work"/pi/models/*.d/adapter_config.json | cut -d' ' -f1)" ] || fail "$(ls "$work"/pi/models)"
grep -q ' from=127.0.0.1:' "$work/pi.log" || fail "pi fetched from nobody: $(grep store "$work/pi.log")"

# ---- pi's copy of the weights goes bad under its name: attic asks pi, finds it out, and has it from the gateway
bad=$(sha256sum "$data/hf/llama-gqa/model.safetensors" | cut -d' ' -f1)
n=$(stat -c %s "$work/pi/models/$bad.safetensors")
head -c "$n" /dev/zero >"$work/zero"
mv "$work/zero" "$work/pi/models/$bad.safetensors"
until_true "pi has said what it has" attached pi
join attic
"$SHOAL_BIN" node drain pi --server "$url" >/dev/null || fail "drain"
until_true "attic has it" ready attic/llama/0
until_true "attic has the other" ready attic/embed/0
grep -q "component=store event=liar node=pi digest=$bad" "$work/attic.log" || fail "no liar: $(grep store "$work/attic.log")"
grep -q "component=store event=fetched digest=$bad .* from=127.0.0.1:" "$work/attic.log" || fail "$(grep store "$work/attic.log")"
end_agent pi
check "attic answers otherwise"

# ---- started again, it has everything
fetched=$(grep -c 'event=fetched' "$work/attic.log")
end_agent attic
start_agent attic
until_true "attic is back" ready attic/llama/0
until_true "with both" ready attic/embed/0
check "attic answers otherwise after its restart"
[ "$(grep -c 'event=fetched' "$work/attic.log")" -eq "$fetched" ] || fail "it fetched again: $(grep store "$work/attic.log")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "a folder and two adapters travelled twice, past a liar; $fetched files came to the second machine"
