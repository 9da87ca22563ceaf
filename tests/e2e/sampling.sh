#!/usr/bin/env bash
# What holds of a request that does not say how its reply is drawn: the configuration's, then the model's own files',
# then the API's, in every API.
source "$(dirname "$0")/lib.sh"
cp -r tests/data/hf/llama-gqa "$work/author"
echo '{"temperature": 0.25, "top_k": 7, "top_p": 0.5, "repetition_penalty": 1.25, "do_sample": true}' >"$work/author/generation_config.json"
cp -r tests/data/hf/llama-gqa "$work/silent"
echo '{"eos_token_id": 2}' >"$work/silent/generation_config.json"
"$SHOAL_BIN" quantize "$work/author" "$work/author.gguf" --type f32 >/dev/null 2>&1 || fail "quantize"
cat >"$work/c.yaml" <<EOF
manifest: $PWD/models/models.json
models:
- {name: author, path: $work/author}
- {name: file, path: $work/author.gguf}
- {name: silent, path: $work/silent}
- {name: own, path: $work/author, sampling: {temperature: 0.5, min_p: 0}}
- {name: home-chat-s}
- {name: bundled, path: $PWD/models/home-chat-s.gguf}
EOF
start_shoal "$work/c.yaml"
ask() { curl -s -m 60 "$url$1" -H 'content-type: application/json' ${2:+-d "$2"} -D "$work/head"; }
# $1: what is asked; $2: the text; $3: what it must hold.
has() { case $2 in *"$3"*) ;; *) fail "$1: no $3 in $(head -c 1500 <<<"$2")" ;; esac; }

said='"sampling":{"temperature":0.25,"top_k":7,"top_p":0.5,"repetition_penalty":1.25}'
has "/v1/models/author" "$(ask /v1/models/author)" "$said"
has "/v1/models/file" "$(ask /v1/models/file)" "$said"
has "/v1/models/own" "$(ask /v1/models/own)" '"sampling":{"temperature":0.5,"top_k":7,"top_p":0.5,"min_p":0,"repetition_penalty":1.25}'
has "/v1/models/home-chat-s" "$(ask /v1/models/home-chat-s)" '"sampling":{"temperature":0}'
has "/v1/models/bundled" "$(ask /v1/models/bundled)" '"sampling":{"temperature":0}'
case $(ask /v1/models/silent) in *'"sampling"'*) fail "a model that says nothing has its own sampling" ;; esac
has "/api/show" "$(ask /api/show '{"model":"author"}')" 'repeat_penalty                 1.25'

# llama-server's clients see what their request came to.
settings() { ask /completion "{\"model\":\"$1\",\"prompt\":\"a\",\"n_predict\":1${2:-}}"; }
has "author" "$(settings author)" '"temperature":0.25,"top_k":7,"top_p":0.5,"min_p":0.05,"typical_p":1.0,"repeat_last_n":-1,"repeat_penalty":1.25'
has "author, asked" "$(settings author ',"temperature":1.5,"top_k":0')" '"temperature":1.5,"top_k":0,"top_p":0.5,"min_p":0.05'
has "silent" "$(settings silent)" '"temperature":0.8,"top_k":40,"top_p":0.95,"min_p":0.05'
has "own" "$(settings own)" '"temperature":0.5,"top_k":7,"top_p":0.5,"min_p":0,'
has "/props" "$(ask '/props?model=author')" '"temperature":0.25,"top_k":7'

# And OpenAI's in a response.
response() { ask /v1/responses "{\"model\":\"$1\",\"input\":\"a\",\"max_output_tokens\":1${2:-}}"; }
has "a response" "$(response home-chat-s)" '"temperature":0,"top_p":0.95'
has "a response, asked" "$(response home-chat-s ',"temperature":0.5')" '"temperature":0.5,"top_p":0.95'

# A bundled model gives the same answer twice, which is kept; one that draws does not keep its own.
complete() { ask /v1/completions "{\"model\":\"$1\",\"prompt\":\"turn on\",\"max_tokens\":12${2:-}}" >"$work/body"; }
complete home-chat-s; complete home-chat-s
grep -qi '^x-shoal-cache: hit' "$work/head" || fail "the answer of a greedy model was not kept: $(cat "$work/head")"
complete silent; complete silent
grep -qi '^x-shoal-cache: hit' "$work/head" && fail "an answer that was drawn was kept"

# What was said when the model draws anyway: seeds are the request's.
same() { complete silent ',"seed":5'; sed 's/.*"text":"\([^"]*\)".*/\1/' "$work/body"; }
one=$(same); [ "$one" = "$(same)" ] || fail "the same seed gave two answers"
stop_shoal

# On the command line.
has "show" "$("$SHOAL_BIN" show "$work/author.gguf")" 'temperature=0.25,top_k=7,top_p=0.5,repetition_penalty=1.25'
one=$("$SHOAL_BIN" run models/home-chat-s.gguf "turn on the kitchen light" --here --no-home 2>/dev/null)
[ "$one" = "$("$SHOAL_BIN" run home-chat-s "turn on the kitchen light" --here --no-home --temp 0 2>/dev/null)" ] ||
    fail "shoal run does not take the likeliest tokens of a bundled model: $one"
sed -i 's/temperature: 0.5/temperature: 2.5/' "$work/c.yaml"
"$SHOAL_BIN" serve -c "$work/c.yaml" --port 0 >/dev/null 2>"$work/err" && fail "temperature 2.5 was taken"
has "a configuration" "$(cat "$work/err")" 'sampling.temperature'
echo "request, configuration, model, API: in this order everywhere"
