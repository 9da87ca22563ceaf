#!/usr/bin/env bash
# Texts into texts and documents in order, over HTTP: /v1/translate, /v1/summarize and /v1/rerank reach the models
# that do them, count what was read, and refuse the others with the endpoint that would take them.
source "$(dirname "$0")/lib.sh"

data=$PWD/tests/data/hf
cat >"$work/c.yaml" <<EOF2
models:
  - {name: translator, path: $data/marian-translate}
  - {name: ranker, path: $data/cross-encoder-rerank}
  - {name: intent, path: $data/bert-intent}
  - {name: writer, path: $data/llama-gqa}
EOF2
start_shoal "$work/c.yaml"

# ask PATH BODY: the answer's body
ask() { curl -sS "$url/v1/$1" -H 'content-type: application/json' -d "$2"; }
has() { grep -qF -- "$2" <<<"$1" || fail "no $2 in $1"; }

for beams in 1 4; do
    for path in translate summarize; do
        body=$(ask $path "{\"model\":\"translator\",\"input\":\"turn on the light\",\"max_tokens\":4,\"num_beams\":$beams}")
        has "$body" '"finish_reason":"length"'
        has "$body" '"completion_tokens":4'
        ! grep -q '"prompt_tokens":1,' <<<"$body" || fail "the source was not counted: $body"
    done
done
has "$(ask completions '{"model":"translator","prompt":"turn on","max_tokens":2}')" '"finish_reason":"length"'
has "$(ask completions '{"model":"translator","prompt":[1,2]}')" 'send text, not messages or token ids'
has "$(ask translate '{"model":"translator","input":"a","num_beams":2,"temperature":1}')" 'beam search takes the likeliest'
has "$(ask chat/completions '{"model":"translator","messages":[{"role":"user","content":"a"}]}')" '/v1/translate'
has "$(ask translate '{"model":"writer","input":"a"}')" '/v1/completions'

for model in '' '"model":"ranker",'; do
    body=$(ask rerank "{$model\"query\":\"which light?\",\"documents\":[\"red\",\"red\",\"the light in the hall\"],\"top_n\":2}")
    has "$body" '"relevance_score":'
    has "$body" '"model":"ranker"'
done
has "$(ask classify '{"model":"ranker","input":"which light?","pair":"red"}')" '"label":"LABEL_0"'
has "$(ask rerank '{"model":"intent","query":"a","documents":["b"]}')" '"code":"wrong_task"'

stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"
! grep "level=error.*worker_exited" "$log" || fail "a worker died"
echo "texts become texts, and documents are put in order"
