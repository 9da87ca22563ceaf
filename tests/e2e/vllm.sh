#!/usr/bin/env bash
# What vLLM's clients send besides OpenAI's API, and its names of metrics.
source "$(dirname "$0")/lib.sh"
shipped >"$work/c.yaml"
echo 'metrics: {compat: vllm}' >>"$work/c.yaml"
start_shoal "$work/c.yaml"
for _ in $(seq 200); do curl -sf -o "$work/out" "$url/readyz" && break; sleep 0.1; done
cat >"$work/vllm.py" <<'END2'
import json, sys, urllib.error, urllib.request
url = sys.argv[1]

def ask(path, body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, data, headers or {})) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()

def ok(path, body=None):
    status, text = ask(path, body)
    assert status == 200, (path, status, text)
    return json.loads(text)

# The tokenizer. home-chat-s and home-chat-m have one vocabulary, so no model needs to be named.
info = ok("/tokenizer_info")
assert info["eos_token"] == "<|im_end|>" and info["bos_token"] is None and "message" in info["chat_template"], info
assert ok("/v1/tokenizer_info?model=home-chat-m")["model"] == "home-chat-m"
text = "turn off the kitchen light, please"
ids = ok("/tokenize", {"prompt": text, "add_special_tokens": False})
assert ids["count"] == len(ids["tokens"]) > 3 and ids["max_model_len"] == 2048, ids
assert ids["tokens"] == ok("/v1/tokenize", {"content": text})["tokens"]
back = ok("/detokenize", {"tokens": ids["tokens"]})
assert back == {"content": text, "prompt": text}, back
strs = ok("/tokenize", {"prompt": text, "return_token_strs": True})["token_strs"]
assert "".join(strs) == text, strs
chat = ok("/tokenize", {"messages": [{"role": "user", "content": "hi"}]})["tokens"]
assert ok("/v1/detokenize", {"tokens": chat})["prompt"].endswith("<|im_start|>assistant\n")
assert len(ok("/tokenize", {"prompt": info["eos_token"], "add_special_tokens": False})["tokens"]) == 1

# A reply by token ids, with every optional field null.
nulls = dict.fromkeys(["stop", "seed", "logprobs", "n", "best_of", "suffix", "top_p", "top_k", "min_p", "presence_penalty",
                       "frequency_penalty", "repetition_penalty", "logit_bias", "user", "stream", "stream_options", "echo", "min_tokens",
                       "ignore_eos", "prompt_logprobs", "stop_token_ids", "truncate_prompt_tokens", "allowed_token_ids", "bad_words",
                       "return_tokens_as_token_ids", "response_format", "guided_json"])
short = ok("/v1/completions", {"model": "home-chat-s", "prompt": chat, "temperature": 0, "max_tokens": 200, **nulls})
n = short["usage"]["completion_tokens"]
assert short["choices"][0]["finish_reason"] == "stop" and n < 100, short
longer = ok("/v1/completions", {"model": "home-chat-s", "prompt": chat, "temperature": 0, "max_tokens": 200, "min_tokens": n + 7})
assert longer["usage"]["completion_tokens"] >= n + 7, longer
assert longer["choices"][0]["text"].startswith(short["choices"][0]["text"]), (short, longer)
exact = ok("/v1/completions", {"model": "home-chat-s", "prompt": chat, "temperature": 0, "max_tokens": n + 9, "ignore_eos": True})
assert exact["usage"]["completion_tokens"] == n + 9, exact

# A stream that counts as it goes, without the ids that some of vLLM's own tools cannot read.
body = {"model": "home-chat-m", "prompt": chat, "temperature": 1, "seed": 3, "max_tokens": 90, "ignore_eos": True, "stream": True, "logprobs": 1,
        "return_tokens_as_token_ids": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
status, stream = ask("/v1/completions", body, {"x-shoal-event-ids": "0", "cache-control": "no-store"})
assert status == 200 and stream.endswith("data: [DONE]\n\n"), stream
events = [json.loads(e.removeprefix("data: ")) for e in stream.split("\n\n") if e and e != "data: [DONE]"]
counts = [e["usage"]["completion_tokens"] for e in events]
assert counts[-1] == 90 and counts == sorted(counts) and counts[0] < 90, counts
assert all(e["usage"]["prompt_tokens"] == len(chat) for e in events), events
names = [t for e in events for c in e["choices"] if c["logprobs"] for t in c["logprobs"]["tokens"]]
assert len(names) == 90 and all(t.startswith("token_id:") for t in names), names
assert "\nid: " in "\n" + ask("/v1/completions", body)[1]

# Scores of a prompt by its characters.
scored = ok("/v1/completions", {"model": "home-chat-s", "prompt": "Grüße aus Köln", "echo": True, "max_tokens": 1, "logprobs": 10})
marks = scored["choices"][0]["logprobs"]
said = scored["choices"][0]["text"]
assert marks["text_offset"][-1] <= len(said) and marks["text_offset"][0] == 0 and marks["token_logprobs"][0] is None, marks
assert max(len(t) for t in marks["top_logprobs"] if t) == 10

for path, field, body in [("/v1/completions", "min_tokens", {"prompt": "a", "min_tokens": 9, "max_tokens": 8}),
                          ("/v1/completions", "prompt_logprobs", {"prompt": "a", "prompt_logprobs": 1}),
                          ("/v1/chat/completions", "min_tokens",
                           {"messages": [{"role": "user", "content": "a"}], "min_tokens": 9, "response_format": {"type": "json_object"}}),
                          ("/tokenize", "content", {})]:
    status, text = ask(path, {"model": "home-chat-s", **body})
    assert status == 400 and field in text, (path, body, status, text)

# The server.
assert ok("/version")["version"] and ok("/load") == {"server_load": 0} and ok("/ping") == {} and ok("/ping", {}) == {}
models = {m["id"]: m for m in ok("/v1/models")["data"]}
assert models["home-chat-s"]["max_model_len"] == 2048 and models["home-chat-s"]["root"] == "home-chat-s", models["home-chat-s"]

# An embedder ranks where no cross-encoder is served.
ranking = ok("/v1/rerank", {"query": "turn the light on", "documents": ["what is the weather", "switch on the lamp"]})
assert ranking["ranked_by"] == "embeddings" and ranking["model"] == "home-embed", ranking
assert [r["index"] for r in ranking["results"]] == [1, 0] and models["home-embed"]["rerank"] == "embeddings", ranking
END2
python3 "$work/vllm.py" "$url" || fail "an answer is not what vLLM's clients expect"
sleep 1.1 # /metrics is rendered once a second
curl -s "$url/metrics" >"$work/metrics"
for name in 'num_requests_waiting{model_name="home-chat-s"} 0' 'num_requests_running{model_name="home-embed"} 0' \
    'kv_cache_usage_perc{model_name="home-chat-s"}' 'generation_tokens_total{model_name="home-chat-s"}' \
    'request_success_total{model_name="home-chat-s",finished_reason="length"}' \
    'time_to_first_token_seconds_bucket{model_name="home-chat-s",le="0.0001"}' \
    'inter_token_latency_seconds_count{model_name="home-chat-s"}' 'prefix_cache_queries_total{model_name="home-chat-s"}'; do
    grep -qF "vllm:$name" "$work/metrics" || fail "/metrics lacks vllm:$name"
done
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ended with $stopped"
echo "vLLM's fields, endpoints and metrics"
