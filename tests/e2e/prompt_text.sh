#!/usr/bin/env bash
# Texts of requests: a prompt that spells the begin-of-text token out has one, and a NUL character is refused by every endpoint.
source "$(dirname "$0")/lib.sh"
# Four GGUF files: the tokenizer asks for the begin-of-text token or does not, and the template writes it or does not.
declare -A template=([writes]='{{ bos_token }}{{ messages[0].content }}' [lacks]='{{ messages[0].content }}')
gguf=
for t in writes lacks; do
    printf '%s' "${template[$t]}" >"$work/$t.jinja"
    "$SHOAL_BIN" edit "$ggufs"/llama-gqa.gguf "$work/asks-$t.gguf" --chat-template "$work/$t.jinja" >/dev/null || fail "edit"
    python3 - "$work/asks-$t.gguf" "$work/quiet-$t.gguf" <<'END' || fail "add_bos_token"
import sys
data = bytearray(open(sys.argv[1], "rb").read())
key = b"tokenizer.ggml.add_bos_token\x07\0\0\0"
at = data.index(key) + len(key)
assert data[at] == 1
data[at] = 0
open(sys.argv[2], "wb").write(data)
END
    for a in asks quiet; do gguf+="  - {name: $a-$t, path: $work/$a-$t.gguf}"$'\n'; done
    mkdir "$work/folder-$t"
    for f in config.json model.safetensors tokenizer.json tokenizer_config.json; do
        ln -s "$PWD/tests/data/hf/llama-gqa/$f" "$work/folder-$t/$f"
    done
    cp "$work/$t.jinja" "$work/folder-$t/chat_template.jinja"
    gguf+="  - {name: folder-$t, path: $work/folder-$t}"$'\n'
done
cat >"$work/shoal.yaml" <<END
models:
$gguf  - {name: talk, path: $PWD/tests/data/hf/llama-gqa}
  - {name: embed, path: $PWD/tests/data/hf/minilm-embed}
END
start_shoal "$work/shoal.yaml"
python3 - "$url" <<'END' || fail "texts of requests"
import json, sys, urllib.request, urllib.error
url = sys.argv[1]
def post(path, body):
    try:
        return 200, json.load(urllib.request.urlopen(urllib.request.Request(url + path, json.dumps(body).encode()), timeout=60))
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)
def count(prompt):
    status, r = post("/v1/completions", {"model": "talk", "prompt": prompt, "max_tokens": 1, "temperature": 0})
    assert status == 200, r
    return r["usage"]["prompt_tokens"], r["choices"][0]["text"]
plain = count("turn on")
spelt = count("<s>turn on")
status, r = post("/tokenize", {"model": "talk", "content": "<s>turn on", "add_special": False, "parse_special": True})
assert status == 200 and spelt[0] == len(r["tokens"]), (spelt, r)
assert count("<s><s>turn on")[0] == spelt[0] + 1, "more than the tokenizer's own token is dropped"
assert plain[0] <= spelt[0]

def chat(model):
    status, r = post("/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": "turn on"}], "max_tokens": 1})
    assert status == 200, r
    return r["usage"]["prompt_tokens"]
n = chat("quiet-lacks")
assert [chat(m) - n for m in ("asks-writes", "asks-lacks", "quiet-writes")] == [1, 1, 1], "GGUF files: one where either asks for it"
assert chat("folder-writes") - chat("folder-lacks") == 1, "a folder's template alone decides"

NUL = "a\0b"
message = [{"role": "user", "content": NUL}]
schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["a", NUL]}}}
for path, body, param in [
    ("/v1/chat/completions", {"model": "talk", "messages": message}, "messages"),
    ("/v1/chat/completions", {"model": "talk", "messages": [{"role": "user", "content": [{"type": "text", "text": NUL}]}]}, "messages"),
    ("/v1/chat/completions", {"model": "talk", "messages": [{"role": "user", "content": "a"}], "response_format": schema}, "response_format"),
    ("/v1/completions", {"model": "talk", "prompt": NUL}, "prompt"),
    ("/v1/completions", {"model": "talk", "prompt": "a", "stop": [NUL]}, "stop"),
    ("/v1/responses", {"model": "talk", "input": NUL}, "input"),
    ("/v1/embeddings", {"model": "embed", "input": [NUL]}, "input"),
    ("/completion", {"model": "talk", "prompt": NUL}, "prompt"),
    ("/tokenize", {"model": "talk", "content": NUL}, "content"),
    ("/apply-template", {"model": "talk", "messages": message}, "messages"),
    ("/api/chat", {"model": "talk", "messages": message}, None),
    ("/api/generate", {"model": "talk", "prompt": NUL}, None),
    ("/api/embed", {"model": "embed", "input": NUL}, None),
]:
    status, r = post(path, body)
    text = json.dumps(r)
    assert status == 400 and "NUL" in text, (path, status, text)
    if param and "param" in r["error"]:
        assert r["error"]["param"] == param, (path, text)
END
stop_shoal
echo "one begin-of-text token; a NUL character in a client's own text is a 400 everywhere"
