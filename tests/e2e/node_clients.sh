#!/usr/bin/env bash
# Clients of npm, unmodified, against a running home cluster, and whether docs/clients.md says what came of it
# (SHOAL_WRITE_CLIENTS=1 writes it); and ajv over what constrained replies may be (SHOAL_WALKS).
# long: packages of npm, and a minute of CPU
source "$(dirname "$0")/lib.sh"
npm_clients *.mjs
export SHOAL_WALKS=$work/walks.json SHOAL_CALLS=$work/calls.json
build/tests/grammar_test_grammar_walk >/dev/null 2>&1 || fail "grammar_test_grammar_walk failed"
export SHOAL_STATE=$work/state # for its vector stores
# The shipped cluster, with a model that hears, and one of random weights that was trained for nothing.
plain=$work/plain
mkdir "$plain"
ln -s "$PWD"/tests/data/hf/llama-gqa/{model.safetensors,tokenizer.json} "$plain"
sed 's/"max_position_embeddings": 256/"max_position_embeddings": 2048/' tests/data/hf/llama-gqa/config.json >"$plain/config.json"
printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}' >"$plain/chat_template.jinja"
shipped | sed "s|^models:|models:\n  - {name: home-ears}\n  - {name: plain, path: $plain}|" >"$work/c.yaml"
cat >>"$work/c.yaml" <<END
allow_origins: ["https://app.example"]
moderation: {model: home-intent, safe: [alarm_set, alarm_query], min_score: 0.4}
END
export SHOAL_WAV=$PWD/tests/data/speech/wav/08-lights-on.wav
start_shoal "$work/c.yaml"
export SHOAL_URL=$url SHOAL_PROTO=$PWD/proto SHOAL_SOCKETS=$(dirname "$(grep -o 'unix:[^ "]*' "$log" | head -1 | cut -c6-)")
(cd "$modules" && timeout 280 node --test --test-concurrency=1 --test-reporter=tap ./*.test.mjs) >"$work/node.log" 2>&1
rc=$?
stop_shoal
if [ $rc -ne 0 ]; then
    grep -A25 '^not ok' "$work/node.log" | grep -vE '^ +(duration_ms|type):' | head -80
    fail "a client failed"
fi
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
said=$(node tests/node/clients_table.mjs "tests/e2e/$(basename "$0")" "$SHOAL_CALLS" docs/clients.md \
    ${SHOAL_WRITE_CLIENTS:+--write} 2>&1) || {
    echo "$said"
    fail "docs/clients.md is not what the clients saw: SHOAL_WRITE_CLIENTS=1 bash $0"
}
grep -E '^# (pass|fail|skipped)' "$work/node.log" | tr '\n' ' '
echo
