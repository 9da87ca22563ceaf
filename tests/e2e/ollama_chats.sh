#!/usr/bin/env bash
# Ollama's requests that other servers would refuse: conversations longer than the context, prompts for a model without a chat
# template, a chat without messages. And functions that declare no parameters get none, in every dialect.
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<END
manifest: $PWD/models/models.json
models:
  - {name: home-chat-s, kv_mb: 32, context: 512}
  - {name: plain, path: $PWD/tests/data/hf/llama-gqa}
END
export SHOAL_STATE=$work/state
start_shoal "$work/c.yaml"
python3 - "$url" <<'END' || fail "Ollama's requests"
import json, sys, urllib.request, urllib.error
url = sys.argv[1]
def post(path, **body):
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, json.dumps(body).encode()), timeout=120) as r:
            return r.status, json.loads(r.read().splitlines()[-1] if body.get("stream") else r.read())
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)
def message(role, text): return {"role": role, "content": text}
options = {"num_predict": 4, "temperature": 0}
system, last = message("system", "You control a home."), message("user", "turn on the kitchen light")

# The oldest messages go; the system's and the last stay. What is asked is then a shorter conversation.
turns = [message(role, "line %d %s" % (i, "of a long talk " * 5)) for i in range(40) for role in ("user", "assistant")]
for stream in (False, True):
    status, r = post("/api/chat", model="home-chat-s", stream=stream, options=options, messages=[system, *turns, last])
    assert status == 200 and 100 < r["prompt_eval_count"] <= 512, (status, r)
status, kept_all = post("/api/chat", model="home-chat-s", stream=False, options=options, messages=[system, last])
status, r = post("/api/chat", model="home-chat-s", stream=False, options=options, messages=[message("user", "old " * 500), system, last])
assert status == 200 and r["prompt_eval_count"] == kept_all["prompt_eval_count"], (r, kept_all)
for body in ({"messages": [system, *turns, last], "truncate": False}, {"messages": [message("user", "a " * 2000)]}):
    status, r = post("/api/chat", model="home-chat-s", stream=False, options=options, **body)
    assert status == 400 and "context" in r["error"], r
# A tool's result is not sent without its call.
call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "light_on", "arguments": {"room": "hall"}}}]}
status, r = post("/api/chat", model="home-chat-s", stream=False, options=options,
                 messages=[*turns, message("user", "hall light on"), call, message("tool", "done")])
assert status == 200, r
for path, field in (("/api/generate", "truncate"), ("/api/generate", "shift"), ("/api/chat", "shift")):
    asked = {"prompt": "hi"} if path == "/api/generate" else {"messages": [last]}
    status, r = post(path, model="home-chat-s", stream=False, options=options, **asked, **{field: True})
    assert status == 400 and field in r["error"], (path, field, r)
    status, r = post(path, model="home-chat-s", stream=False, options=options, **asked, **{field: False})
    assert status == 200, (path, field, r)

# Without a chat template the prompt is the text itself, behind the system message.
def generate(**body):
    status, r = post("/api/generate", model="plain", stream=False, options=options, **body)
    assert status == 200, r
    return r
raw = generate(prompt="turn on", raw=True)
assert generate(prompt="turn on")["response"] == raw["response"] and raw["response"]
both = generate(prompt="turn on", system="Be brief.")
assert both["prompt_eval_count"] == generate(prompt="Be brief.\n\nturn on", raw=True)["prompt_eval_count"]
assert len(generate(prompt="turn on", logprobs=True, top_logprobs=2)["logprobs"][0]["top_logprobs"]) == 2
assert generate(prompt="turn on", think=False)["response"] == raw["response"]
status, r = post("/api/generate", model="plain", stream=True, options=options, prompt="turn on")
assert status == 200 and r["done"], r

# A chat that has no messages loads the model, as an empty list does.
for body in ({}, {"messages": None}, {"messages": []}):
    status, r = post("/api/chat", model="home-chat-s", **body)
    assert status == 200 and r["done_reason"] == "load", r

# A function without "parameters" has none. One with an empty schema takes any object.
function = {"name": "turn_off_everything"}
said = [message("user", "turn everything off")]
tools = [{"type": "function", "function": function}]
fixed = {"model": "home-chat-s", "messages": said, "temperature": 0}
def call_of(status, r):
    assert status == 200, r
    return r["choices"][0]["message"]
for form in (tools, [{"type": "function", "function": {**function, "parameters": None}}],
             [{"type": "function", "function": {**function, "strict": False}}],
             [{"type": "function", "function": {**function, "parameters": {"type": "object", "properties": {}}}}]):
    m = call_of(*post("/v1/chat/completions", tools=form, tool_choice="required", **fixed))
    assert json.loads(m["tool_calls"][0]["function"]["arguments"]) == {}, (form, m)
m = call_of(*post("/v1/chat/completions", functions=[function], function_call=function, **fixed))
assert json.loads(m["function_call"]["arguments"]) == {}, m
status, r = post("/v1/responses", model="home-chat-s", temperature=0, input="turn everything off", tool_choice="required",
                 tools=[{"type": "function", **function}])
assert status == 200 and [json.loads(o["arguments"]) for o in r["output"] if o["type"] == "function_call"] == [{}], r
status, r = post("/api/chat", model="home-chat-s", stream=False, options={"temperature": 0}, messages=said, tools=tools)
assert status == 200 and all(c["function"]["arguments"] == {} for c in r["message"].get("tool_calls", [])), r
END
stop_shoal

# ---- models made of others: the requests of Ollama's command for cp, create, show, run and rm, and a restart between
cat >"$work/made.py" <<'END'
import json, sys, time, urllib.request, urllib.error
url, turn = sys.argv[1:]
def call(path, method="POST", **body):
    ask = urllib.request.Request(url + path, json.dumps(body).encode() if body else None, method=method)
    try:
        with urllib.request.urlopen(ask, timeout=60) as r: return r.status, [json.loads(l) for l in r.read().splitlines()]
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)["error"]
def chat(model, **more):
    status, r = call("/api/chat", model=model, stream=False, messages=[{"role": "user", "content": "turn on the kitchen light"}], **more)
    assert status == 200, r
    return r[0]
OWN = """{{- range .Messages }}{{ .Role }}> {{ .Content }};{{ end }}{{/* "\\ \t ü */}}{{ if .Tools }}{{ .Tools }}{{ end }}assistant> """
TURNS = "{{ if .Suffix }}<{{ .Prompt }}|{{ .Suffix }}>{{ else }} Q: {{ .Prompt }} A: {{ if and .IsThinkSet .Think }} hm{{ end }}{{ .Response }}{{ end }}"
tags = lambda: {m["name"]: m for m in call("/api/tags", "GET")[1][0]["models"]}
if turn == "first":
    assert call("/api/copy", source="home-chat-s:latest", destination="mine") == (200, [{}])
    status, lines = call("/api/create", model="", name="brief:latest", **{"from": "mine"}, system="You control a home.",
                         parameters={"num_predict": 3, "stop": ["zzz"], "num_ctx": 64}, messages=[{"role": "user", "content": "hi"}])
    assert status == 200 and lines[-1] == {"status": "success"} and len(lines) > 1, lines
    assert call("/api/create", model="second", **{"from": "brief"}, parameters={"num_predict": 5}, stream=False) == (200, [{"status": "success"}])
    assert call("/api/create", model="own", **{"from": "plain"}, template=OWN, stream=False)[0] == 200
    assert call("/api/create", model="told", **{"from": "own"}, system="Be brief.", stream=False)[0] == 200
    assert call("/api/create", model="turns", **{"from": "plain"}, template=TURNS, stream=False)[0] == 200
    for body, status, words in (
            (dict(source="nobody", destination="x"), 404, "nobody"), (dict(source="home-chat-s", destination="plain"), 409, "plain"),
            (dict(source="home-chat-s", destination="../x"), 400, "letters"), (dict(source="home-chat-s"), 400, "destination"), (dict(source=7, destination="x"), 400, "source")):
        got, why = call("/api/copy", **body)
        assert got == status and words in why, (body, got, why)
    for body, status, words in (
            (dict(model="x"), 400, "from"), (dict(model="x", **{"from": "nobody"}), 404, "nobody"), (dict(**{"from": "plain"}), 400, "model"),
            (dict(model="x", **{"from": "plain"}, template="a\n{{ .Prompt }"), 400, "line 2"), (dict(model="x", **{"from": "plain"}, template='{{ block "a" . }}{{ end }}'), 400, '"block"'),
            (dict(model="x", **{"from": "plain"}, template=7), 400, "template"), (dict(model="x", **{"from": "plain"}, template="x" * 70000), 400, "65536"), (dict(model="x", **{"from": "plain"}, files={"a.gguf": "sha256:0"}), 400, "files"), (dict(model="x", files={"a.gguf": "sha256:" + "0" * 64}), 400, "shoal load"), (dict(model="x", files={"a": "b", "c": "d"}), 400, "one GGUF"),
            (dict(model="x", **{"from": "plain"}, parameters={"temperature": 9}), 400, "temperature"), (dict(model="x", **{"from": "plain"}, parameters=[]), 400, "parameters"),
            (dict(model="plain", **{"from": "plain"}), 409, "plain"), (dict(model="x", **{"from": "plain"}, messages=[{"role": 7}]), 400, "role")):
        got, why = call("/api/create", **body)
        assert got == status and words in why, (body, got, why)
assert {"mine", "brief", "second"} <= tags().keys(), tags().keys()
assert tags()["mine"]["size"] == tags()["home-chat-s"]["size"] > 0 and tags()["mine"]["digest"] != tags()["home-chat-s"]["digest"]
assert tags()["mine"]["details"]["parent_model"] == "home-chat-s"
base, mine, brief, second = chat("home-chat-s"), chat("mine:latest"), chat("brief"), chat("second")
assert mine["message"] == base["message"] and mine["model"] == "mine:latest" and mine["prompt_eval_count"] == base["prompt_eval_count"]
assert brief["eval_count"] == 3 and second["eval_count"] == 5 and brief["done_reason"] == "length", (brief, second)
assert brief["prompt_eval_count"] == second["prompt_eval_count"] > base["prompt_eval_count"] + 4, brief # the system message and one more
assert chat("brief", options={"num_predict": 2})["eval_count"] == 2 # what is asked comes first
status, r = call("/api/generate", model="brief", prompt="turn on", stream=False)
assert status == 200 and r[0]["eval_count"] == 3, r
shown = call("/api/show", model="", name="brief")[1][0]
assert shown["system"] == "You control a home." and "num_predict" in shown["parameters"] and shown["modelfile"].startswith("FROM home-chat-s\n"), shown
assert call("/api/generate", model="brief", keep_alive=0)[1][0]["done_reason"] == "load" # as before rm; it takes no memory of its own
# The other APIs know them, too.
user = [{"role": "user", "content": "turn on the kitchen light"}]
listed = {m["id"]: m for m in call("/v1/models", "GET")[1][0]["data"]}
assert listed["brief"]["root"] == "home-chat-s" and listed["brief"]["task"] == "generate" and "mine" in listed, listed
assert call("/v1/models/brief", "GET")[1][0] == listed["brief"]
for _ in range(100): # a worker that a busy machine keeps from its heartbeat is away for a moment
    ready = call("/readyz?model=brief", "GET")
    if ready[0] == 200: break
    time.sleep(0.1)
assert ready[0] == 200, ready
def used(path, **body):
    status, r = call(path, **body)
    assert status == 200 and r[0]["model"] == "brief", (path, r)
    return r[0]["usage"]
u = used("/v1/chat/completions", model="brief:latest", messages=user)
assert u["completion_tokens"] == 3 and u["prompt_tokens"] == brief["prompt_eval_count"], u
assert used("/v1/chat/completions", model="brief", messages=user, max_completion_tokens=2)["completion_tokens"] == 2
assert used("/v1/completions", model="brief", prompt="turn on")["completion_tokens"] == 3
assert used("/v1/responses", model="brief", input=user)["output_tokens"] == 3
assert call("/completion", model="brief", prompt="turn on")[1][0]["tokens_predicted"] == 3
tensor = {"name": "text_input", "datatype": "BYTES", "shape": [1], "data": ["turn on"]}
assert "length" in json.dumps(call("/v2/models/brief/infer", inputs=[tensor])[1])
# A template of its own: what the model reads is what the same text in Jinja makes of the messages, in every API.
def completion(model, messages, **more):
    status, r = call("/v1/chat/completions", model=model, messages=messages, temperature=0, max_tokens=8, **more)
    assert status == 200, r
    return r[0]
def alike(name, jinja, messages, before=()):
    want = completion("plain", [*before, *messages], chat_template=jinja)
    got = completion(name, messages)
    assert got["choices"][0]["message"] == want["choices"][0]["message"] and got["model"] == name, (got, want)
    assert got["usage"]["prompt_tokens"] == want["usage"]["prompt_tokens"], (got, want)
    text = [call("/apply-template", model=m, messages=t, **more)[1][0]["prompt"] for m, t, more in
            ((name, messages, {}), ("plain", [*before, *messages], {"chat_template": jinja}))]
    assert text[0] == text[1] and messages[-1]["content"] in text[0], text
    cold = {"temperature": 0, "num_predict": 8}
    status, r = call("/api/chat", model=name, messages=messages, options=cold, stream=False)
    assert status == 200 and r[0]["message"]["content"] == want["choices"][0]["message"]["content"], (r, want)
    assert r[0]["prompt_eval_count"] == want["usage"]["prompt_tokens"], (r, want)
    if len(messages) == 1:
        status, r = call("/api/generate", model=name, prompt=messages[0]["content"], options=cold, stream=False)
        assert status == 200 and r[0]["response"] == want["choices"][0]["message"]["content"], (r, want)
def asks(text): return {"role": "user", "content": text}
for messages in ([asks("the lamp")], [asks("hi"), {"role": "assistant", "content": "yes"}, asks("the lamp")]):
    alike("own", "{% for m in messages %}{{ m.role }}> {{ m.content }};{% endfor %}assistant> ", messages)
    alike("told", "{% for m in messages %}{{ m.role }}> {{ m.content }};{% endfor %}assistant> ", messages, [{"role": "system", "content": "Be brief."}])
    alike("turns", "{% for m in messages %}{{ ' Q: ' if m.role == 'user' else ' A: ' }}{{ m.content }}{% endfor %} A: ", messages)
for name, template in (("own", OWN), ("told", OWN), ("turns", TURNS)):
    shown = call("/api/show", model=name)[1][0]
    assert shown["template"] == template, shown
    assert shown["capabilities"] == (["completion", "insert", "thinking"] if name == "turns" else ["completion", "tools"]), shown
assert call("/api/chat", model="turns", messages=[asks("a")], think=True, stream=False, options={"num_predict": 1})[0] == 200
assert "thinking" in call("/api/chat", model="own", messages=[asks("a")], think=True)[1]
between = dict(prompt="the", suffix="lamp", stream=False, options={"temperature": 0, "num_predict": 4})
want = call("/api/generate", model="plain", template="<{{ .Prompt }}|{{ .Suffix }}>", **between)
assert want[0] == 200 and call("/api/generate", model="turns", **between)[1][0]["response"] == want[1][0]["response"], want
for model, more, words in (("own", {}, "insert"), ("turns", {"raw": True}, "raw"), ("plain", {"template": "{{ .Suffix"}, "line 1"), ("plain", {"raw": True, "template": "a", "suffix": ""}, "raw")):
    got, why = call("/api/generate", model=model, **{**between, **more})
    assert got == 400 and words in why, (got, why)
if turn == "second":
    for name in ("mine", "brief", "own", "told", "turns"):
        assert call("/api/delete", "DELETE", model="", name=name)[0] == 200
    assert call("/v1/models/second", "DELETE") == (200, [{"id": "second", "object": "model", "deleted": True, "files": 0, "bytes": 0}])
    assert call("/v1/chat/completions", model="second", messages=user)[0] == 404
    assert not {"mine", "brief", "second", "own", "told", "turns"} & tags().keys() and "home-chat-s" in tags()
    assert call("/api/chat", model="mine", messages=[])[0] == 404 and call("/api/delete", "DELETE", model="mine")[0] == 404
END
start_shoal "$work/c.yaml"
python3 "$work/made.py" "$url" first || fail "models made of others"
stop_shoal
start_shoal "$work/c.yaml"
python3 "$work/made.py" "$url" second || fail "models made of others, after a restart"
stop_shoal
printf '{"a": 7, "b": {"from": "plain"}, "odd": {"from": "plain", "parameters": 5}, "odd2": {"from": "plain", "messages": "x"}, "odd3": {"from": "plain", "template": 7}, "worn": {"from": "plain", "template": "{{ .X"}}' >"$work/state/variants.json"
start_shoal "$work/c.yaml"
curl -s "$url/api/tags" | grep -q '"name":"b"' || fail "a broken entry takes the others with it"
curl -s "$url/api/tags" | grep -qE '"name":"(a|odd[23]?)"' && fail "a broken entry is a model"
[[ $(curl -s "$url/v1/chat/completions" -d '{"model": "worn", "messages": [{"role": "user", "content": "a"}]}') = *'line 1'* ]] || fail "a template that somebody broke is not told"
stop_shoal
printf '{"b"' >"$work/state/variants.json"
start_shoal "$work/c.yaml"
grep -q 'event=variants_not_read' "$log" || fail "a broken file is not told"
copy() { curl -s "$url/api/copy" -d "{\"source\": \"plain\", \"destination\": \"$1\"}"; }
[ "$(copy fresh)" = "{}" ] || fail "a copy beside a broken file"
[ "$(cat "$work/state/variants.json.broken")" = '{"b"' ] || fail "a broken file is written over"
# Another server that shares the folder has written since.
python3 - "$work/state/variants.json" <<'END'
import json, sys
all = json.load(open(sys.argv[1]))
all["theirs"] = {"from": "plain"}
json.dump(all, open(sys.argv[1], "w"))
END
[ "$(copy later)" = "{}" ] || fail "a copy after another server's"
curl -s "$url/api/tags" | grep -q '"name":"theirs"' || fail "another server's model is lost"
# More than a start reads again is not taken.
cat >"$work/fill.py" <<'END'
import json, sys, urllib.request
def create(n):
    body = {"model": f"big{n}", "from": "plain", "system": "x" * 900000, "stream": False}
    try: return urllib.request.urlopen(sys.argv[1] + "/api/create", json.dumps(body).encode()).status
    except urllib.error.HTTPError as e: return e.code, e.read().decode()
said = [create(n) for n in range(5)]
assert said[:4] == [200] * 4 and said[4][0] == 507 and "delete some" in said[4][1], said
END
python3 "$work/fill.py" "$url" || fail "more models made of others than are read again"
stop_shoal
start_shoal "$work/c.yaml"
curl -s "$url/api/tags" | grep -q '"name":"big3"' || fail "models made of others are lost at the next start"
