#!/usr/bin/env bash
# early: it keeps a core busy for half a minute.
# schemathesis reads /openapi.json and sends what the document allows and what it forbids: no answer is a server error but a
# missed deadline, and status, media type and form of each are what the document says. By default its coverage phase, whose
# cases are fixed; SHOAL_SCHEMATHESIS=all: every phase, with drawn requests.
# long: a package of PyPI, and minutes of CPU
source "$(dirname "$0")/lib.sh"
program=$(scripts/schemathesis.sh 2>"$work/install") || skip "schemathesis: $(tail -1 "$work/install")"
export SHOAL_STATE=$work/state
mkdir "$work/store"
data=$PWD/tests/data
shipped | sed -E "s|^models:|models:\n  - {name: translator, path: $data/hf/marian-translate, context: 64}\n  - {name: ranker, path: $data/hf/cross-encoder-rerank}\n  - {name: table, path: $data/forest/reg.json}\n  - {name: look, path: $data/hf/vit-tiny}\n  - {name: hears, path: $data/hf/whisper}|; s|^    kv_mb: .*|    context: 128|" >"$work/c.yaml"
cat >>"$work/c.yaml" <<END
moderation: {model: home-intent, safe: [alarm_set, alarm_query], min_score: 0.4}
library: {store: $work/store}
END
start_shoal "$work/c.yaml"

phases=coverage
[ "${SHOAL_SCHEMATHESIS:-}" = all ] && phases=examples,coverage,fuzzing,stateful
printf '[checks]\nnot_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501, 504]\n' >"$work/schemathesis.toml"
# Streams without an end, and what changes which models the others meet.
left_out=()
for id in events llama_models_sse logs ws model_load model_unload ollama_pull; do left_out+=(--exclude-operation-id "$id"); done
(cd "$work" && timeout 800 "$program" run "$url/openapi.json" --phases "$phases" -w 1 --seed 1 --no-color --continue-on-failure \
    --request-timeout 120 -c not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    "${left_out[@]}") >"$work/schemathesis.log" 2>&1 || {
    sed -n '/= FAILURES =/,$p; /= ERRORS =/,$p' "$work/schemathesis.log" | head -120
    fail "$(tail -1 "$work/schemathesis.log")"
}
kill -0 "$server" 2>/dev/null || fail "the gateway is gone"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
grep -E '^ +[0-9]+ generated' "$work/schemathesis.log"
