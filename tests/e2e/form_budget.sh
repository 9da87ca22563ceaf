#!/usr/bin/env bash
# Replies of a form end by themselves: strings with a format or a pattern, required properties of an open schema, and
# formats with lengths, at every max_tokens, temperature and without a limit; each is what the schema wants.
# long: minutes of CPU
source "$(dirname "$0")/lib.sh"
cat >"$work/shoal.yaml" <<CONFIG
cache: {mb: 0}
manifest: $PWD/models/models.json
models:
  - name: home-chat-s
  - name: home-chat-m
CONFIG
start_shoal "$work/shoal.yaml"
python3 - "$url" <<'PY' || fail "a reply was cut or is not what its schema wants"
import json, os, re, sys, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor

URL = sys.argv[1]
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
EMAIL = rf"(?=.{{0,254}}$)(?=[^@]{{1,64}}@)[A-Za-z0-9_+'.-]+@(?:{LABEL}\.)+[A-Za-z]{{2,}}"
ADDRESS = rf"[A-Za-z0-9_+'.-]+@(?:{LABEL}\.)+[A-Za-z]{{2,}}"
HOST = rf"(?=.{{0,253}}$){LABEL}(?:\.{LABEL})*"
URI = r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\"<>\\^`{|}]+"


def text(**more):
    return {"type": "object", "properties": {"s": {"type": "string", **more}}, "required": ["s"], "additionalProperties": False}


def is_text(pattern, least=0, most=10**6):
    return lambda d: list(d) == ["s"] and re.fullmatch(pattern, d["s"], re.S) and least <= len(d["s"]) <= most


PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]}
is_person = lambda d: isinstance(d["name"], str) and type(d["age"]) is int
CASES = [
    ("email", text(format="email"), True, is_text(ADDRESS)),
    ("uri", text(format="uri"), True, is_text(URI)),
    ("user@host", text(pattern="^[a-z]+@[a-z]+$"), True, is_text("[a-z]+@[a-z]+")),
    ("words", text(pattern=r"^([a-z]+\.)+com$"), True, is_text(r"([a-z]+\.)+com")),
    ("address", text(pattern=r"^[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}$"), True, is_text(r"[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}")),
    ("foo bar", text(pattern="^.*foo.*bar.*$"), True, is_text(".*foo.*bar.*")),
    ("open", PERSON, False, is_person),
    ("closed", {**PERSON, "additionalProperties": False}, True, is_person),
    ("HttpUrl", text(format="uri", minLength=1, maxLength=2083), True, is_text(URI, 1, 2083)),
    ("uri 200", text(format="uri", maxLength=200), True, is_text(URI, 1, 200)),
    ("uri 255", text(format="uri", maxLength=255), True, is_text(URI, 1, 255)),
    ("email 254", text(format="email", maxLength=254), True, is_text(EMAIL, 1, 254)),
    ("email 320", text(format="email", maxLength=320), True, is_text(EMAIL, 1, 320)),
    ("host 250", text(format="hostname", minLength=250), True, is_text(HOST, 250, 253)),
]


def post(path, body):
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        return json.load(urllib.request.urlopen(request, timeout=300))
    except urllib.error.HTTPError as e:
        return {"error": json.load(e)}


def ask(job):
    model, (name, schema, strict, is_valid), max_tokens, temperature, seed = job
    if name == "host 250":
        max_tokens = max_tokens and max_tokens + 260
    body = {"model": model, "seed": seed, "temperature": temperature, "messages": [{"role": "user", "content": "Write to me."}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": strict, "schema": schema}}}
    if max_tokens:
        body["max_tokens"] = max_tokens
    got = post("/v1/chat/completions", body)
    try:
        choice = got["choices"][0]
        if choice["finish_reason"] == "stop" and is_valid(json.loads(choice["message"]["content"])):
            return None
    except (KeyError, ValueError):
        pass
    return f"{model} {name} max_tokens {max_tokens} temperature {temperature} seed {seed}: {json.dumps(got)[:600]}"


jobs = [(m, c, n, t, s)
        for m, n_seeds in (("home-chat-s", 3), ("home-chat-m", 1))
        for c in CASES for n, t in ((30, 0), (60, 0.8), (120, 2), (300, 0.8), (None, 0.8))
        for s in range(n_seeds if t else 1)]
with ThreadPoolExecutor(4) as pool:
    bad = [b for b in pool.map(ask, jobs) if b]

# The same schemas as a tool's parameters, and as Ollama's format.
for name, schema, strict, is_valid in CASES[8:13]:
    tools = [{"type": "function", "function": {"name": "note", "parameters": schema}}]
    got = post("/v1/chat/completions", {"model": "home-chat-s", "max_tokens": 150, "tools": tools, "tool_choice": "required",
                                        "messages": [{"role": "user", "content": "Write to me."}]})
    if "error" in got or not is_valid(json.loads(got["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])):
        bad.append(f"tool {name}: {got}")
    got = post("/api/chat", {"model": "home-chat-s", "stream": False, "format": schema, "options": {"num_predict": 100},
                             "messages": [{"role": "user", "content": "Write to me."}]})
    if "message" not in got or not is_valid(json.loads(got["message"]["content"])):
        bad.append(f"format {name}: {got}")
print(len(jobs), "replies,", len(bad), "bad")
print("\n".join(bad[:20]))
sys.exit(bool(bad))
PY
stop_shoal
