#!/usr/bin/env bash
# A model that writes NUL bytes: every API gives them as the character U+0000, nothing is cut, and a stream joined is the whole reply.
source "$(dirname "$0")/lib.sh"
# `bytes` writes them as tokens of one byte; the decoder of `letters` makes one of each "e", "t" and "a".
mkdir "$work/letters"
for f in config.json model.safetensors tokenizer_config.json; do ln -s "$PWD/tests/data/hf/qwen3-qknorm/$f" "$work/letters/$f"; done
python3 - "$PWD/tests/data/hf/qwen3-qknorm/tokenizer.json" "$work/letters/tokenizer.json" <<'END' || fail "tokenizer.json"
import json, sys
t = json.load(open(sys.argv[1]))
t["decoder"] = {"type": "Sequence", "decoders": [t["decoder"]] + [
    {"type": "Replace", "pattern": {"String": c}, "content": "\0"} for c in "eta"]}
json.dump(t, open(sys.argv[2], "w"))
END
cat >"$work/shoal.yaml" <<END
models:
  - {name: bytes, path: $PWD/tests/data/hf/qwen3-qknorm}
  - {name: letters, path: $work/letters}
END
start_shoal "$work/shoal.yaml"
python3 - "$url" <<'END' || fail "replies with NUL bytes"
import json, sys, urllib.request, urllib.error
url = sys.argv[1]
NUL = 191  # the token of the byte 0
def post(path, body):
    req = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        return urllib.request.urlopen(req, timeout=60).read().decode()
    except urllib.error.HTTPError as e:
        raise AssertionError((path, body, e.read().decode()))
def events(raw):
    return [json.loads(l[6:]) for l in raw.splitlines() if l.startswith("data: {")]
def lines(raw):
    return [json.loads(l) for l in raw.splitlines() if l]
def same(what, whole, joined, least=1):
    assert whole == joined, (what, whole, joined)
    assert whole.count("\0") >= least, (what, whole)
talk = [{"role": "user", "content": "hi"}]

# 1. Tokens of the byte 0 alone and among others, with log-probabilities.
for n, least, bias in ((6, 6, {"logit_bias": {str(NUL): 100}}),
                       (24, 1, {"logit_bias": {str(NUL): 12}, "seed": 5, "temperature": 1.5, "ignore_eos": True})):
    ask = {"model": "bytes", "max_tokens": n, **bias, "messages": talk, "logprobs": True}
    r = json.loads(post("/v1/chat/completions", ask))["choices"][0]
    s = [e["choices"][0] for e in events(post("/v1/chat/completions", {**ask, "stream": True})) if e["choices"]]
    same("chat", r["message"]["content"], "".join(c["delta"].get("content") or "" for c in s), least)
    tokens = [t for c in s for t in (c.get("logprobs") or {}).get("content") or []]
    assert tokens == r["logprobs"]["content"], "log-probabilities of chat"
    assert sum(t["bytes"] == [0] for t in tokens) == r["message"]["content"].count("\0")
    assert sum(t["token"] == "\0" for t in tokens) == r["message"]["content"].count("\0")

    ask = {"model": "bytes", "max_tokens": n, **bias, "prompt": "hi", "logprobs": 1}
    r = json.loads(post("/v1/completions", ask))["choices"][0]
    s = [e["choices"][0] for e in events(post("/v1/completions", {**ask, "stream": True})) if e["choices"]]
    same("completions", r["text"], "".join(c["text"] for c in s), least)

    ask = {"model": "bytes", "prompt": "hi", "n_predict": n, "n_probs": 1, "return_tokens": True, **bias}
    r = json.loads(post("/completion", ask))
    same("/completion", r["content"], "".join(e["content"] for e in events(post("/completion", {**ask, "stream": True}))), least)
    text = json.loads(post("/detokenize", {"model": "bytes", "tokens": r["tokens"]}))["content"]
    assert text == r["content"], ("/detokenize", text, r["content"])

# 2. All APIs give the same text.
say = {"temperature": 1, "seed": 3}
n = 48
ask = {"model": "letters", "messages": talk, "max_tokens": n, **say}
text = json.loads(post("/v1/chat/completions", ask))["choices"][0]["message"]["content"]
assert text.count("\0") > 2 and text.strip("\0"), text
r = json.loads(post("/v1/chat/completions", ask))["choices"][0]["message"]["content"]  # from the cache
assert r == text, r
at = text.index("\0") + 1  # a stop text behind the first NUL
stop = next(c for c in text[at:] if c != "\0" and c not in text[:at] and ord(c) < 127)
r = json.loads(post("/v1/chat/completions", {**ask, "stop": [stop]}))["choices"][0]["message"]["content"]
assert r == text[:text.index(stop)], (stop, r, text)

# A client sends the reply back; nobody else's text may hold a NUL.
turns = talk + [{"role": "assistant", "content": text}, {"role": "user", "content": "more"}]
for body in ({"messages": turns}, {"messages": turns[:1] + [{"role": "assistant", "content": [{"type": "text", "text": text}]}] + turns[2:]}):
    r = json.loads(post("/v1/chat/completions", {"model": "letters", "max_tokens": 2, **body}))
    prompt = json.loads(post("/apply-template", {"model": "letters", **body}))["prompt"]
    assert text in prompt, (text, prompt)
post("/api/chat", {"model": "letters", "messages": turns, "stream": False, "options": {"num_predict": 2}})
post("/v1/responses", {"model": "letters", "input": turns, "max_output_tokens": 2})

ask = {"model": "letters", "messages": talk, "options": {"num_predict": n, "top_k": 0, "top_p": 1, **say}}
r = json.loads(post("/api/chat", {**ask, "stream": False}))["message"]["content"]
same("/api/chat", r, "".join(e["message"]["content"] for e in lines(post("/api/chat", ask))))
ask = {"model": "letters", "prompt": "hi", "options": {"num_predict": n, **say}}
r = json.loads(post("/api/generate", {**ask, "stream": False}))["response"]
same("/api/generate", r, "".join(e["response"] for e in lines(post("/api/generate", ask))))

ask = {"model": "letters", "input": "hi", "max_output_tokens": n, "temperature": 1, "store": True}
r = json.loads(post("/v1/responses", {**ask, "temperature": 0}))
whole = r["output"][-1]["content"][0]["text"]
kept = json.loads(urllib.request.urlopen(url + "/v1/responses/" + r["id"], timeout=60).read())
s = events(post("/v1/responses", {**ask, "temperature": 0, "stream": True}))
same("/v1/responses", whole, "".join(e["delta"] for e in s if e["type"] == "response.output_text.delta"))
assert kept["output"][-1]["content"][0]["text"] == whole, kept
next_turn = json.loads(post("/v1/responses", {**ask, "previous_response_id": r["id"], "input": "more"}))
assert next_turn["status"] in ("completed", "incomplete"), next_turn

r = json.loads(post("/v2/models/letters/infer", {"inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [1], "data": ["hi"]}],
    "parameters": {"max_tokens": n, **say}}))
[out] = [o["data"][0] for o in r["outputs"] if o["datatype"] == "BYTES" and "text" in o["name"]]
assert out.count("\0") > 2, r
END
stop_shoal
echo "NUL bytes of replies come as U+0000"
