#!/usr/bin/env bash
# Texts of requests: a prompt that spells the begin-of-text token out has one, and a NUL character is refused by every endpoint.
source "$(dirname "$0")/lib.sh"
cat >"$work/shoal.yaml" <<END
models:
  - {name: talk, path: $PWD/tests/data/hf/llama-gqa}
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
