#!/usr/bin/env bash
# Tasks over HTTP with tiny models of random weights: texts from texts, with beams and streamed, and documents in order.
# The service's answers are the command line's, to the byte.
source "$(dirname "$0")/lib.sh"
hf=$PWD/tests/data/hf
cat >"$work/c.yaml" <<END
models:
  - {name: t5, path: $hf/flan-t5-gated}
  - {name: bart, path: $hf/bart}
  - {name: ranker, path: $hf/cross-encoder-rerank}
  - {name: intent, path: $hf/bert-intent}
  - {name: llama, path: $hf/llama-gqa}
END
start_shoal "$work/c.yaml"
post() { curl -sS --max-time 30 "$url$1" -H 'content-type: application/json' -d "$2"; }
has() { grep -qF -- "$2" <<<"$1" || fail "no $2 in $1"; }

# field JSON EXPRESSION: what a JavaScript expression says of the object `o`
field() { node -e 'const o = JSON.parse(process.argv[1]); console.log(JSON.stringify(eval(process.argv[2])))' "$1" "$2"; }
command -v node >/dev/null || field() { sed -n 's/.*"text":\("[^"]*"\).*/\1/p' <<<"$1"; }

# ---- nobody was named to moderate
has "$(post /v1/moderations '{"input":"a"}')" '"code":"moderation_off"'

# ---- texts from texts
for m in t5 bart; do
    folder=$hf/bart
    [ $m = t5 ] && folder=$hf/flan-t5-gated
    for beams in 1 3; do
        said=$("$SHOAL_BIN" seq2seq "$folder" "the lamp is on" -b $beams -n 12 --json) || fail "seq2seq $m"
        body=$(post /v1/translate "{\"model\":\"$m\",\"input\":\"the lamp is on\",\"num_beams\":$beams,\"max_tokens\":12}")
        has "$body" '"object":"translation"'
        [ "$(field "$body" 'o.data?.[0].text')" = "$(field "$said" 'o.text')" ] ||
            fail "$m with $beams beams: $body but $said"
    done
done
body=$(post /v1/summarize '{"model":"t5","prefix":"sum: ","input":["one","two"],"max_tokens":5}')
has "$body" '"object":"summary"'
has "$body" '"index":1'
has "$(post /v1/completions '{"model":"t5","prompt":"the lamp is on","temperature":0,"max_tokens":5}')" '"object":"text_completion"'
has "$(post /v1/translate '{"model":"t5","input":"a","stream":true,"max_tokens":5}')" 'data: [DONE]'
has "$(post /v1/translate '{"model":"t5","input":"a","stream":true,"num_beams":2,"max_tokens":5}')" 'data: [DONE]'
has "$(post /v1/chat/completions '{"model":"t5","messages":[{"role":"user","content":"hi"}]}')" '"code":"wrong_task"'
has "$(post /v1/translate '{"model":"llama","input":"a"}')" '"code":"wrong_task"'
has "$(post /v1/translate '{"model":"t5","input":"a","num_beams":3,"temperature":1}')" 'beam search takes the likeliest reply'
has "$(post /v1/translate '{"model":"t5","input":"a","num_beams":11}')" '"param":"num_beams"'
has "$(post /v1/translate '{"model":"t5","input":[]}')" '"param":"input"'

# ---- documents in order
body=$(post /v1/rerank '{"model":"ranker","query":"a question","documents":["one","two",{"text":"three"}],"return_documents":true}')
said=$("$SHOAL_BIN" rerank "$hf/cross-encoder-rerank" "a question" one two three --json) || fail "rerank"
[ "$(field "$body" 'o.results.map(r => [r.index, r.relevance_score])')" = "$(field "$said" 'o.results.map(r => [r.index, r.relevance_score])')" ] ||
    fail "rerank: $body but $said"
body=$(post /v1/rerank '{"model":"ranker","query":"q","documents":["d","",{"text":""},"d"]}')
[ "$(field "$body" 'new Set(o.results.map(r => r.relevance_score)).size + " " + o.results.length')" = '"2 4"' ] || fail "empty documents: $body"
has "$(post //v1/rerank/ '{"query":"q","documents":["d"]}')" '"model":"ranker"' # slashes too many
has "$(post /v1/rerank '{"query":"q","documents":["d"]}')" '"model":"ranker"' # the only one that ranks
has "$(post /v1/classify '{"model":"ranker","input":{"text":"q","pair":"d"}}')" '"labels":['
has "$(post /v1/rerank '{"model":"intent","query":"q","documents":["d"]}')" '"code":"wrong_task"'

stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"
echo "texts from texts, and documents in order"
