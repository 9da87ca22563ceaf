#!/usr/bin/env bash
# The longest text of an embedder: sentence-transformers' max_seq_length, truncation where it is asked for, and a context
# of the configuration in its place; the same from a GGUF file that was made of the folder.
source "$(dirname "$0")/lib.sh"
cp -r tests/data/hf/minilm-embed "$work/short"
echo '{"max_seq_length": 16, "do_lower_case": false}' >"$work/short/sentence_bert_config.json"
"$SHOAL_BIN" quantize -t f32 "$work/short" "$work/short.gguf" >/dev/null 2>&1 || fail "quantize"
cat >"$work/shoal.yaml" <<END
models:
  - {name: short, path: $work/short}
  - {name: file, path: $work/short.gguf}
  - {name: long, path: $work/short, context: 64}
  - {name: talk, path: $PWD/models/home-chat-s.gguf, kv_mb: 1}
  - {name: less, path: $PWD/models/home-chat-s.gguf, context: 256}
  - {name: whole, path: $PWD/models/home-chat-s.gguf}
END
# What a model could hold beyond what it is served with, and the key for it.
"$SHOAL_BIN" serve --check -c "$work/shoal.yaml" >"$work/check" || fail "--check"
most=$("$SHOAL_BIN" models inspect "$PWD/models/home-chat-s.gguf" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["context"])')
for noted in "short .* 16 .* context" "file .* 16 .* context" "long .* 64 .* context" "less .* 256 tokens and was made for $most: its key context" \
    "talk .* [0-9]+ tokens and was made for $most: its key kv_mb"; do
    grep -qE "^note: $noted gives it more" "$work/check" || fail "no note '$noted': $(cat "$work/check")"
done
! grep -q "note: whole" "$work/check" || fail "a note on a model that has all: $(cat "$work/check")"
start_shoal "$work/shoal.yaml"
served=$(sed -nE 's/^note: talk is served with a context of ([0-9]+) .*/\1/p' "$work/check")
grep -qE "event=ready replica=[^ ]* model=talk .* context=$served model_context=$most longer_by=kv_mb " "$log" || fail "the line of talk: $(grep event=ready "$log")"
grep -qE "event=ready replica=[^ ]* model=less .* context=256 model_context=$most longer_by=context " "$log" || fail "the line of less"
grep -qE "event=ready replica=[^ ]* model=whole .* context=$most model_context=$most longer_by=\"*[ \"]" "$log" || fail "the line of whole: $(grep event=ready "$log")"

# embed MODEL FIELDS: status and, on success, tokens and the first values
embed() {
    curl -s -m 30 "$url/v1/embeddings" -d "{\"model\":\"$1\",\"input\":\"$text\"$2}" | python3 -c '
import json, sys
r = json.load(sys.stdin)
print(r["error"]["message"] if "error" in r else "%d %s" % (r["usage"]["prompt_tokens"], r["data"][0]["embedding"][:4]))'
}
text=$(printf 'turn on the light %.0s' 1 2 3 4 5 6 7 8)
for model in short file; do
    [[ $(embed $model "") == *"maximum context length is 16 tokens"*"model $model"*'"truncate": true'* ]] || fail "$model takes it whole: $(embed $model "")"
    cut=$(embed $model ',"truncate":true')
    [[ $cut == 16\ * ]] || fail "$model does not truncate: $cut"
    [ "$cut" = "$(embed $model ',"truncate_prompt_tokens":-1')" ] || fail "$model: -1 is another limit"
    [ "$cut" = "$(embed $model ',"truncate_prompt_tokens":900')" ] || fail "$model: 900 is not the model's limit"
    [[ $(embed $model ',"truncate_prompt_tokens":5') == 5\ * ]] || fail "$model: not five tokens"
done
[ "$(embed short ',"truncate":true')" = "$(embed long ',"truncate_prompt_tokens":16')" ] || fail "other tokens remain"
whole=$(embed long "")
[[ $whole != 16\ * && $whole != *longer* ]] || fail "the configured context does not count: $whole"

# Ollama's calls truncate unless they say false; OpenAI's refuses, and names the text.
python3 - "$url" "$text" <<'END' || fail "truncation by Ollama's calls"
import json, sys, urllib.request, urllib.error
url, long = sys.argv[1], sys.argv[2]
def post(path, **body):
    try:
        return 200, json.load(urllib.request.urlopen(urllib.request.Request(url + path, json.dumps(body).encode()), timeout=60))
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)
def vectors(**body):
    status, r = post("/api/embed", model="short", **body)
    assert status == 200, r
    return r
neighbour = vectors(input="a light")
cut = vectors(input=long)
assert cut["prompt_eval_count"] == 16, cut
assert vectors(input=long, truncate=True)["embeddings"] == cut["embeddings"]
pair = vectors(input=[long, "a light"])
assert pair["embeddings"] == cut["embeddings"] + neighbour["embeddings"], "the neighbour's vector differs"
assert pair["prompt_eval_count"] == 16 + neighbour["prompt_eval_count"]
status, old = post("/api/embeddings", model="short", prompt=long)
assert status == 200 and len(old["embedding"]) == len(cut["embeddings"][0]), old
for path, field, value in ("/api/embed", "input", long), ("/api/embed", "input", ["a light", long]), ("/api/embeddings", "prompt", long):
    status, r = post(path, model="short", truncate=False, **{field: value})
    assert status == 400 and "maximum context length is 16 tokens, and the text has 58" in r["error"], r
assert post("/api/embed", model="short", input=long, truncate="yes")[0] == 400
for nothing in [], "":
    r = vectors(input=nothing)
    assert r["embeddings"] == [] and r["model"] == "short", r
    assert vectors(input=nothing, keep_alive=0)["embeddings"] == []
assert post("/api/embeddings", model="short", prompt="") == (200, {"embedding": []})
assert post("/api/embed", model="absent", input=[])[0] == 404
for value, param in (long, "input"), (["a light", long], "input[1]"):
    status, r = post("/v1/embeddings", model="short", input=value)
    e = r["error"]
    assert (status, e["code"], e["param"]) == (400, "context_length_exceeded", param), r
    assert "This model's maximum context length is 16 tokens" in e["message"], r
status, r = post("/v1/embeddings", model="short", input=[1, 2, 3])
assert status == 200 and len(r["data"]) == 1 and r["usage"]["prompt_tokens"] == 3, r
status, both = post("/v1/embeddings", model="short", input=[[1, 2, 3], [4]])
assert status == 200 and both["data"][0]["embedding"] == r["data"][0]["embedding"] and len(both["data"]) == 2, both
status, r = post("/v1/embeddings", model="short", input=[[1], [99999999]])
assert (status, r["error"]["param"]) == (400, "input[1]") and "check_embedding_ctx_length=False" in r["error"]["message"], r
status, r = post("/api/embed", model="short", input=[1, 2, 3])
assert (status, r["error"]) == (400, '"input" must be text or an array of texts'), r
END
stop_shoal
echo "max_seq_length, truncate, truncate_prompt_tokens and context are what they say"
