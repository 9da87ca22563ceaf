"""check.py URL: the models of tests/e2e/real_weights.sh against references.json. Prints a line per check; the exit status
is 1 when one fails. Nothing but Python's own library is needed."""
import base64
import json
import math
import os
import re
import struct
import sys
import urllib.request
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
WAVS = os.path.join(HERE, "..", "data", "speech", "wav")
URL = sys.argv[1]
inputs = json.load(open(os.path.join(HERE, "inputs.json"), encoding="utf-8"))
passage = open(os.path.join(HERE, "passage.txt"), encoding="utf-8").read()
references = json.load(open(os.path.join(HERE, "references.json"), encoding="utf-8"))
failures = 0


def check(ok, what):
    global failures
    failures += not ok
    print(("ok      " if ok else "FAILED  ") + what, flush=True)


def post(path, body, kind="application/json"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"content-type": kind})
    try:
        with urllib.request.urlopen(request, timeout=600) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        sys.exit("FAILED  %s: %s" % (path, error.read().decode()))


def post_file(path, name, fields):
    mark = uuid.uuid4().hex
    part = '--%s\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n'
    body = b"".join((part % (mark, k, "") + v + "\r\n").encode() for k, v in fields.items())
    with open(os.path.join(WAVS, name), "rb") as f:
        body += (part % (mark, "file", '; filename="%s"' % name)).encode() + f.read() + b"\r\n"
    return post(path, body + ("--%s--\r\n" % mark).encode(), "multipart/form-data; boundary=" + mark)


# ---- token ids -----------------------------------------------------------------------------------------------

def tokens():
    for model, special in (("smollm2", False), ("minilm", True)):
        got = [post("/tokenize", {"model": model, "content": t, "add_special": special})["tokens"] for t in inputs["texts"]]
        wrong = [t for t, a, b in zip(inputs["texts"], got, references[model]["tokens"]) if a != b]
        check(not wrong, "%s: token ids of %d texts%s" % (model, len(got), "; differ: %r" % wrong if wrong else ""))


# ---- SmolLM2 against llama.cpp ---------------------------------------------------------------------------------

# Two engines that round differently may choose differently where the two likeliest tokens are this close (nats): 0.18
# when this was recorded. llama.cpp parts from the same weights in float32 at gaps of up to 0.30.
CLOSE = 0.3


def read(ids):
    """Log-probabilities of all ids but the first, whether each is the likeliest, and their texts."""
    logprobs = post("/v1/completions", {"model": "smollm2", "prompt": ids, "max_tokens": 0, "echo": True, "logprobs": 1,
                                        "temperature": 0})["choices"][0]["logprobs"]
    values = logprobs["token_logprobs"][1:]
    likeliest = [v >= max(top.values()) - 1e-6 for v, top in zip(values, logprobs["top_logprobs"][1:])]
    return values, likeliest, logprobs["tokens"][1:]


def rms(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / len(a))


def perplexity():
    reference = references["smollm2"]["passage"]
    values = read(reference["ids"])[0]
    got = math.exp(-sum(values) / len(values))
    check(len(values) == len(reference["log_probs"]) and got <= 1.005 * reference["perplexity"],
          "smollm2: perplexity of %d tokens %.3f, llama.cpp's %.3f" % (len(values), got, reference["perplexity"]))
    difference = rms(values, reference["log_probs"])
    check(difference < 0.12, "smollm2: log-probabilities differ by %.4f rms" % difference)


def greedy():
    n = same = whole = 0
    worst = 0
    for reply in references["smollm2"]["replies"]:
        prompt, ids = reply["prompt"], reply["ids"]
        values, likeliest, texts = read(prompt + ids)
        first = len(prompt) - 1
        for v, ok, want, gap in zip(values[first:], likeliest[first:], reply["log_probs"], reply["gaps"]):
            n, same = n + 1, same + ok
            worst = max(worst, 0 if ok else gap)
        made = post("/v1/completions", {"model": "smollm2", "prompt": prompt, "max_tokens": len(ids), "temperature": 0,
                                        "logprobs": 1})["choices"][0]["logprobs"]["tokens"]
        at = next((i for i, (a, b) in enumerate(zip(made, texts[first:])) if a != b), None)
        whole += at is None
        if at is not None:
            worst = max(worst, reply["gaps"][at])
    check(worst < CLOSE, "smollm2: %d of %d tokens are the likeliest, %d of %d greedy replies whole, the others part where "
          "llama.cpp's two likeliest are %.2f apart or closer" % (same, n, whole, len(references["smollm2"]["replies"]), worst))


# ---- SmolLM2 as a person uses it -------------------------------------------------------------------------------

def conversation():
    messages, cached, empty = [], [], 0
    for turn in range(20):
        messages.append({"role": "user", "content": "My dog is called Rex. Tell me something about dogs, part %d." % turn})
        reply = post("/v1/chat/completions", {"model": "smollm2", "messages": messages, "max_tokens": 8, "temperature": 0})
        content = reply["choices"][0]["message"]["content"]
        empty += not content.strip() or "<|im_" in content
        messages.append({"role": "assistant", "content": content})
        usage = reply["usage"]
        cached.append((usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]))
    # All of the turn before but its last page may come from the cache.
    reused = all(now[1] >= before[0] - 64 for before, now in zip(cached[4:], cached[5:]))
    check(empty == 0 and reused, "smollm2: 20 turns, %d to %d prompt tokens, of the last %d cached" %
          (cached[0][0], cached[-1][0], cached[-1][1]))


TOOLS = [
    {"type": "function", "function": {"name": "set_light", "description": "Turn a light on or off", "parameters": {
        "type": "object", "properties": {"room": {"type": "string", "maxLength": 30}, "on": {"type": "boolean"}},
        "required": ["room", "on"], "additionalProperties": False}}},
    {"type": "function", "function": {"name": "set_timer", "description": "Start a timer", "parameters": {
        "type": "object", "properties": {"minutes": {"type": "integer", "minimum": 1, "maximum": 120}},
        "required": ["minutes"], "additionalProperties": False}}},
]


def tools():
    wrong = []
    for text in ("Turn on the light in the kitchen.", "Wake me in ten minutes.", "Lights off in the hall, please."):
        reply = post("/v1/chat/completions", {"model": "smollm2", "messages": [{"role": "user", "content": text}],
                                              "tools": TOOLS, "tool_choice": "required", "max_tokens": 120, "temperature": 0})
        choice = reply["choices"][0]
        for call in choice["message"].get("tool_calls") or [{"function": {"name": "none", "arguments": "{}"}}]:
            name, given = call["function"]["name"], json.loads(call["function"]["arguments"])
            fits = {"set_light": isinstance(given.get("room"), str) and isinstance(given.get("on"), bool),
                    "set_timer": isinstance(given.get("minutes"), int) and 1 <= given["minutes"] <= 120}
            if choice["finish_reason"] != "tool_calls" or not fits.get(name):
                wrong.append((text, call))
    check(not wrong, "smollm2: tool_choice required gives calls that fit%s" % (": %r" % wrong if wrong else ""))


def schemas():
    person = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
              "required": ["name", "age"], "additionalProperties": False}
    colours = {"type": "object", "properties": {"colours": {"type": "array", "minItems": 2, "maxItems": 3, "items": {"enum": ["red", "green", "blue"]}}},
               "required": ["colours"], "additionalProperties": False}
    cases = (
        (person, lambda r: sorted(r) == ["age", "name"] and isinstance(r["age"], int) and 0 <= r["age"] <= 130 and len(r["name"]) <= 20),
        (colours, lambda r: 2 <= len(r["colours"]) <= 3 and set(r["colours"]) <= {"red", "green", "blue"}),
    )
    wrong = []
    for temperature in (0, 1):
        for schema, fits in cases:
            text = post("/v1/chat/completions", {
                "model": "smollm2", "messages": [{"role": "user", "content": "Describe Ann, who is 34 and likes red and blue."}],
                "temperature": temperature, "seed": 7, "max_tokens": 120,
                "response_format": {"type": "json_schema", "json_schema": {"name": "it", "strict": True, "schema": schema}},
            })["choices"][0]["message"]["content"]
            if not fits(json.loads(text)):
                wrong.append(text)
    check(not wrong, "smollm2: replies by a JSON schema fit it%s" % (": %r" % wrong if wrong else ""))


# ---- MiniLM, Whisper, Silero -----------------------------------------------------------------------------------

def embeddings():
    texts = inputs["texts"] + [passage]
    rows = post("/v1/embeddings", {"model": "minilm", "input": texts, "truncate": True})["data"]
    least = 1
    for row, reference in zip(rows, references["minilm"]["vectors"]):
        want = struct.unpack("<384f", base64.b64decode(reference))
        least = min(least, sum(a * b for a, b in zip(row["embedding"], want)))
    check(len(rows) == len(texts) and least >= 0.9999,
          "minilm: cosine of %d texts with sentence-transformers' at least %.6f" % (len(rows), least))


def words(text):
    return re.sub(r"[^\w' ]", " ", text.lower()).split()


def errors(want, got):
    row = list(range(len(got) + 1))
    for i, w in enumerate(want, 1):
        before, row[0] = row[0], i
        for j, g in enumerate(got, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (w != g))
    return row[-1]


# The recordings are synthetic voices, numerals count as errors, and tiny.en mishears many of them.
def transcripts():
    n = ours = theirs = equal = 0
    for case in json.load(open(os.path.join(WAVS, "transcripts.json"), encoding="utf-8")):
        name = os.path.basename(case["file"])
        got = post_file("/v1/audio/transcriptions", name, {"model": "whisper", "language": "en"})["text"]
        reference, want = references["whisper"][name], words(case["text"])
        n += len(want)
        ours += errors(want, words(got))
        theirs += errors(want, words(reference))
        equal += words(got) == words(reference)
    check(ours <= theirs, "whisper: %d of %d words wrong, faster-whisper %d; %d of %d transcripts equal" % (ours, n, theirs, equal, len(references["whisper"])))


def voice():
    worst, wrong, n = 0, [], 0
    for name, want in references["silero"].items():
        got = post_file("/v1/vad", name, {"model": "silero", "probabilities": "true"})
        n += len(want["probabilities"])
        if len(got["probabilities"]) != len(want["probabilities"]):
            wrong.append(name)
        worst = max([worst] + [abs(a - b) for a, b in zip(got["probabilities"], want["probabilities"])])
        segments = [[round(s["start"] * 16000), round(s["end"] * 16000)] for s in got["segments"]]
        if any(abs(a - b) > 8 for x, y in zip(segments, want["segments"]) for a, b in zip(x, y)) or \
                len(segments) != len(want["segments"]):
            wrong.append(name)
    check(worst < 1e-4 and not wrong, "silero: %d windows differ by at most %.6f from the package's ONNX%s" %
          (n, worst, "; segments differ: %s" % wrong if wrong else ""))


for part in (tokens, perplexity, greedy, conversation, tools, schemas, embeddings, transcripts, voice):
    part()
sys.exit(1 if failures else 0)
