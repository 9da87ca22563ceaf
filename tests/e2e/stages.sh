#!/usr/bin/env bash
# The example pipeline of several kinds of stage, on the small models of tests/data: what it asks each model is
# what the command line says of the same text.
source "$(dirname "$0")/lib.sh"
start_shoal examples/translate-classify.yaml
text='Licht an in der Küche'
ask() { curl -s "$url/v1/process" -d "{\"input\":\"$1\"}" "${@:2}"; }
pick() { sed -E "s/.*$1.*/\\1/" <<<"$2"; }

answer=$(ask "$text" -D "$work/head")
grep -q '"object":"shoal.process"' <<<"$answer" || fail "no answer: $answer"
english=$("$SHOAL_BIN" seq2seq tests/data/hf/marian-translate "$text" --beams 1 --max-tokens 64 --json)
english=$(pick '"text":("([^"\\]|\\.)*")' "$english")
grep -qF "\"text\":$english" <<<"$answer" || fail "the text is not the translation $english: $answer"
english=$(printf '%b' "${english:1:-1}")
label=$(pick '"label":"([a-z_]*)".*' "$("$SHOAL_BIN" classify tests/data/hf/bert-intent "$english" -k 1 --json |
    sed 's/},.*//')")
grep -q "\"intent\":{\"label\":\"$label\"" <<<"$answer" || fail "the intent is not $label: $answer"
for stage in english intent topic manual; do
    grep -q "\"stage\":\"$stage\"" <<<"$answer" || fail "no $stage in the trace: $answer"
done
grep -q '"kind":"embed","model":"vectors","ran":true' <<<"$answer" || fail "nothing was embedded: $answer"
grep -qE '"results":\[\{"index":[0-2],"label":"(lights and lamps|the weather outside|music and radio)","score":' \
    <<<"$answer" || fail "no candidates: $answer"

# ---- the same text again comes from the cache
ask "$text" -D "$work/head" >"$work/again"
grep -qi '^x-shoal-cache: hit' "$work/head" || fail "not cached: $(cat "$work/head")"

# ---- the endpoints of the same models
curl -s "$url/v1/translate" -d '{"model":"translator","input":"Licht an"}' | grep -q '"object":"translation"' ||
    fail "translate: $(curl -s "$url/v1/translate" -d '{"model":"translator","input":"Licht an"}')"
curl -s "$url/v1/rerank" -d '{"query":"lamps","documents":["a","b"]}' | grep -q '"relevance_score":' ||
    fail "rerank: $(curl -s "$url/v1/rerank" -d '{"query":"lamps","documents":["a","b"]}')"

# ---- a model of another task is refused with its line, before anything starts
sed 's/kind: embed/kind: rerank/; s/candidates:/documents:/' examples/translate-classify.yaml |
    sed "s|\.\./tests|$PWD/tests|" >"$work/wrong.yaml"
"$SHOAL_BIN" serve -c "$work/wrong.yaml" --port 0 >"$work/out" 2>"$work/err" && fail "a wrong model was taken"
grep -q "'vectors' is a model to embed, a rerank stage needs one to rerank" "$work/err" ||
    fail "not refused: $(cat "$work/err")"

# ---- fill-mask: who asks another model is told where that one is asked
curl -s "$url/v1/fill-mask" -d '{"model":"intent","input":"a [MASK] day"}' | grep -q '/v1/classify' ||
    fail "fill-mask with a classifier"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"
echo "seq2seq, classify, embed and rerank stages"
