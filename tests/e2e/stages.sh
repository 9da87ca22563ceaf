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
curl -s "$url/v1/translate" -d '{"input":"Licht an"}' | grep -q '"model":"translator"' ||
    fail "the only translator was not found: $(curl -s "$url/v1/translate" -d '{"input":"Licht an"}')"
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

# has WHAT ANSWER: a piece of an answer
has() { grep -qF -- "$1" <<<"$2" || fail "no $1 in: $2"; }
wav=$PWD/tests/data/speech/wav/08-lights-on.wav png=tests/data/signal/rgb.png
process() { "$SHOAL_BIN" process --server "$url" "$@" 2>&1 </dev/null; }

# ---- by voice: what was heard is what intent, slots and rules read; forms, base64 and the command agree
start_shoal examples/voice.yaml
answer=$(curl -s "$url/v1/process" -F file=@"$wav")
has '"heard":"lights on","intent":{"label":"light.turn_on"' "$answer"
has '"tool_call":{"name":"light.turn_on","arguments":{"target":"light.kitchen"}}' "$answer"
has '"kind":"transcribe","model":"home-ears","ran":true,"why":"the request brings audio"' "$answer"
typed=$(ask "lights on")
has '"why":"the request brings no audio"' "$typed"
said='s/.*"text":("[^"]*").*"intent":(\{[^}]*\}).*/\1 \2/'
[ "$(sed -E "$said" <<<"$answer")" = "$(sed -E "$said" <<<"$typed")" ] || fail "typed is not spoken: $typed $answer"
{ printf '{"audio":"'; base64 -w0 "$wav"; printf '"}'; } >"$work/spoken.json"
curl -s -D "$work/head" "$url/v1/process" -d @"$work/spoken.json" >"$work/again"
grep -qi '^x-shoal-cache: hit' "$work/head" || fail "the same sound in JSON is not cached: $(cat "$work/again")"
for other in tests/data/speech/wav/*.wav; do [ "$PWD/$other" -ef "$wav" ] || break; done
curl -s -D "$work/head" "$url/v1/process" -F file=@"$other" >"$work/other"
grep -qi '^x-shoal-cache: miss' "$work/head" || fail "other sound came from the cache"
has "\"heard\":\"$("$SHOAL_BIN" transcribe home-ears "$other")\"" "$(cat "$work/other")"
has 'Attic Lamp' "$(curl -s "$url/v1/process" -F audio=@"$wav" -F 'devices=[{"id":"light.a","name":"Attic Lamp"}]')"
answer=$(process --audio "$wav")
has '  heard   lights on' "$answer"
has '  Turning on Kitchen Light and Hall Light.' "$answer"
has '  heard   lights on' "$("$SHOAL_BIN" process --server "$url" --audio - <"$wav")"
{ head -c 44 "$wav"; head -c "$(($(wc -c <"$wav") - 44))" /dev/zero; } >"$work/silence.wav"
answer=$(curl -s "$url/v1/process" -F file=@"$work/silence.wav")
has '"text":null,"heard":null,"intent":null' "$answer"
has '"stage":"request","kind":"ground","ran":false,"why":"nothing was heard"' "$answer"
has "stage 'words' (model home-ears): not a supported audio file" "$(curl -s "$url/v1/process" -F file=@README.md)"
has "give 'input' or 'audio', not both" "$(process hello --audio "$wav")"
has 'multipart/form-data with the file as a part' \
    "$(curl -s "$url/v1/process" -H 'content-type: audio/wav' --data-binary @"$wav")"
has "does nothing with 'image'" "$(process --image "$wav")"
has 'give a TEXT, lines on standard input, or --audio, --image or --csv' "$(process)"
has 'the file is empty' "$(process --audio /dev/null)"
head -c 33600000 /dev/zero >"$work/long"
has 'answers 413: ' "$(process --audio "$work/long")"
has '"tool_call":{"name":"light.turn_on"' "$(ask "lights on")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"

# ---- a stage that surely listens needs something to listen to
sed -e "s|\.\./models|$PWD/models|; s|\.\./lexicons|$PWD/lexicons|; s|, when: \[{brings: audio}\]}|}|" \
    examples/voice.yaml >"$work/ears.yaml"
start_shoal "$work/ears.yaml"
has "stage 'words' (transcribe) needs a sound file, and the request brings none" "$(ask "lights on")"
stop_shoal

# ---- rows and pictures: what the commands say of them
sed "s|\.\./tests|$PWD/tests|" examples/alerts.yaml >"$work/alerts.yaml"
start_shoal "$work/alerts.yaml"
columns=$(sed -n '/"features"/,/]/p' tests/data/sensors/trees/config.json | sed -nE 's/^ *"([a-z_0-9]+)",?$/\1/p' |
    paste -sd,)
n=$(tr ',' '\n' <<<"$columns" | wc -l)
{ echo "$columns" && seq -s, 1 "$n" && seq -s, 40 "$((39 + n))" && seq -s, 1000 77 $((1000 + 77 * (n - 1))); } >"$work/rows.csv"
"$SHOAL_BIN" score tests/data/sensors/trees "$work/rows.csv" --json >"$work/scored" 2>"$work/err" ||
    fail "the rows: $(cat "$work/err")"
gravest=normal
for label in drift fault; do grep -q "\"label\":\"$label\"" "$work/scored" && gravest=$label; done
[ $gravest != normal ] || fail "these rows are no alert: $(cat "$work/scored")"
answer=$(curl -s "$url/v1/process" -F csv=@"$work/rows.csv" -F image=@$png)
has "\"label\":\"$gravest\"" "$answer"
has ": $gravest 0." "$answer"
has '"rows":3,"scored":3' "$answer"
label=$("$SHOAL_BIN" classify tests/data/hf/vit-tiny --image $png -k 1 --json | grep -o '"label":"[^"]*"' | head -1)
grep -qE "\"model\":\"eyes\"[^{}]*\"quantisation\":\"BF16\"[^{}]*,$label" <<<"$answer" || fail "no $label of eyes in: $answer"
zcat tests/data/sensors/demo.csv.gz | head -3 >"$work/few.csv"
has 'the table has too few rows' "$(curl -s "$url/v1/process" -F csv=@"$work/few.csv")"
has "route   picture        eyes" "$(process --trace --image $png)"
has "route   machine        machines" "$(process --trace --csv "$work/rows.csv")"
# The endpoints of these models take forms, too.
form=$(curl -s "$url/v1/images/classify" -F file=@$png -F top_k=1)
raw=$(curl -s "$url/v1/images/classify?top_k=1" -H 'content-type: image/png' --data-binary @$png)
has "$label" "$form"
[ "$form" = "$raw" ] || fail "a form is not the file: $form $raw"
has '"param":"file"' "$(curl -s "$url/v1/images/classify" -F model=eyes)"
has '"param":"top_k"' "$(curl -s "$url/v1/images/classify" -F file=@$png -F top_k=many)"
form=$(curl -s "$url/v1/score" -F file=@"$work/rows.csv")
raw=$(curl -s "$url/v1/score" -H 'content-type: text/csv' --data-binary @"$work/rows.csv")
has '"label":"' "$form"
[ "$form" = "$raw" ] || fail "a form of rows is not the rows: $form $raw"
stop_shoal

# ---- an adapter of its own for a stage: what /v1/classify says of MODEL:ADAPTER
cat >"$work/adapter.yaml" <<EOF
models:
  - name: intent
    path: $PWD/tests/data/hf/bert-intent
    adapters: [{name: home, path: $PWD/tests/data/adapters/bert-intent}]
pipelines:
  - {name: plain, stages: [{name: i, kind: classify, model: intent}]}
  - {name: adapted, stages: [{name: i, kind: classify, model: intent, adapter: home}]}
EOF
start_shoal "$work/adapter.yaml"
best() { grep -o '"label":"[^"]*","score":0.[0-9]\{4\}' <<<"$1" | head -1; }
with() { best "$(curl -s "$url/v1/classify" -d "{\"model\":\"$1\",\"input\":\"dim the lamp\"}")"; }
through() { curl -s "$url/v1/process" -d "{\"pipeline\":\"$1\",\"input\":\"dim the lamp\"}"; }
[ "$(with intent)" != "$(with intent:home)" ] || fail "the adapter changes nothing: $(with intent)"
has "\"intent\":{$(with intent)" "$(through plain)"
has "\"intent\":{$(with intent:home)" "$(through adapted)"
has '"adapter":"home"' "$(through adapted)"
stop_shoal
sed 's/adapter: home}/adapter: hom}/' "$work/adapter.yaml" >"$work/wrong.yaml"
"$SHOAL_BIN" serve -c "$work/wrong.yaml" --check >"$work/out" 2>&1 && fail "an adapter that is not there was taken"
has "pipelines[1].stages[0].adapter: the model 'intent' has no adapter 'hom'; it has home" "$(cat "$work/out")"

# ---- a voice detector in front: silence is not even listened to
silero=$PWD/../shared/borrowed/silero-vad
if [ -f "$silero/silero_vad_16k.safetensors" ]; then
    sed -e "s|\.\./models|$PWD/models|; s|\.\./lexicons|$PWD/lexicons|" \
        -e "s|^models:|models:\n  - {name: voice, path: $silero/silero_vad_16k.safetensors}|" \
        -e 's|^\( *- {name: \)words, .*|\1voice, kind: vad, model: voice, when: [{brings: audio}]}\n\1words, kind: transcribe, model: home-ears, when: [{stage: voice, label: [speech]}]}|' \
        examples/voice.yaml >"$work/voice.yaml"
    start_shoal "$work/voice.yaml"
    answer=$(curl -s "$url/v1/process" -F file=@"$work/silence.wav")
    has '"label":"silence","score":0.0,"duration":1.302,"results":[]' "$answer"
    has '"why":"voice is silence"' "$answer"
    has '"text":null,"heard":null,"intent":null' "$answer"
    answer=$(curl -s "$url/v1/process" -F file=@"$silero/jfk.wav")
    has '"label":"speech","score":0.' "$answer"
    has '"results":[{"start":0.29,"end":2.302}' "$answer"
    has '"why":"voice is speech"' "$answer"
    has '"why":"the request brings no audio"' "$(ask "lights on")"
    stop_shoal
else
    echo "without Silero's weights: the vad stage was not tried"
fi
echo "seq2seq, classify, embed, rerank, transcribe, score, image and adapter stages"
