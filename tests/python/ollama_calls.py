"""The package ollama, unmodified."""

import asyncio
import json

import httpx
import ollama
from calls import URL, client, equal, rejects
from ollama import AsyncClient, Client, Options
from pydantic import BaseModel

call = client("ollama")
api = Client(host=URL)
HOME = {"role": "system", "content": "You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on"}
HELLO = [{"role": "user", "content": "hello"}]
COLD = {"temperature": 0, "num_predict": 24, "seed": 1}
CHAT = "home-chat-s"


class Light(BaseModel):
    on: bool
    dim: int


@call("chat", "whole and streamed; NAME:latest")
def _():
    whole = api.chat(CHAT + ":latest", messages=HELLO, options=Options(**COLD), keep_alive="5m")
    equal((whole.message.role, whole.done, whole.done_reason), ("assistant", True, "stop"))
    assert whole.message.content and whole.eval_count > 0 and whole.prompt_eval_count > 0 and whole.total_duration > 0
    parts = list(api.chat(CHAT, messages=HELLO, options=COLD, stream=True))
    equal("".join(p.message.content for p in parts), whole.message.content)
    equal([p.done for p in parts], [False] * (len(parts) - 1) + [True])


@call("chat, embed, show, list", "names of Ollama's library, as aliases; the reply has the name that was asked for")
def _():
    for name in ("llama3.2:1b", "llama3", "llama3:latest"):
        equal(api.chat(name, messages=HELLO, options=COLD).model, name)
    equal(api.embed("nomic-embed-text", input="hello").model, "nomic-embed-text")
    assert api.show("llama3.2:1b").details.family
    row = next(m for m in api.list().models if m.model == "llama3.2:1b")
    equal(row.details.parent_model, CHAT)


@call("generate", "whole, streamed, raw, with a system message, and an empty prompt")
def _():
    whole = api.generate(CHAT, "hello", options=COLD)
    equal(whole.response, api.chat(CHAT, messages=HELLO, options=COLD).message.content)
    equal("".join(p.response for p in api.generate(CHAT, "hello", options=COLD, stream=True)), whole.response)
    assert api.generate(CHAT, "The kitchen", raw=True, options=COLD).response
    assert api.generate(CHAT, "hello", system="Be brief.", options=COLD).prompt_eval_count > whole.prompt_eval_count
    equal(api.generate(CHAT).done_reason, "load")


@call("chat, generate", "format: a JSON schema of pydantic, and json")
def _():
    for model in (CHAT, "plain"):
        options = {**COLD, "temperature": 1, "num_predict": 100}
        Light.model_validate_json(api.chat(model, messages=HELLO, format=Light.model_json_schema(), options=options).message.content)
        Light.model_validate_json(api.generate(model, "hello", format=Light.model_json_schema(), options=options).response)
    json.loads(api.generate("home-chat-m", "hello", format="json", options=COLD).response)


def turn_off(target: str) -> str:
    """Turn a light off.

    Args:
      target: the light
    """
    return "off"


@call("chat", "tools made of Python functions are called, and their results go back")
def _():
    messages = [HOME, {"role": "user", "content": "turn off the kitchen light"}]
    light = {"type": "function", "function": {"name": "light.turn_off", "description": "turns a light off", "parameters": {
        "type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]}}}
    first = api.chat(CHAT, messages=messages, tools=[light, turn_off], options={"temperature": 0})
    equal([(c.function.name, c.function.arguments) for c in first.message.tool_calls], [("light.turn_off", {"target": "light.kitchen"})])
    streamed = [c for p in api.chat(CHAT, messages=messages, tools=[light], options={"temperature": 0}, stream=True) for c in p.message.tool_calls or []]
    equal([c.function for c in streamed], [c.function for c in first.message.tool_calls])
    then = api.chat(CHAT, messages=[*messages, first.message, {"role": "tool", "tool_name": "light.turn_off", "content": '{"ok": true}'}], options={"temperature": 0})
    assert then.message.content


@call("embed, embeddings", "a text, texts, fewer dimensions, the older call")
def _():
    one = api.embed("home-embed", "turn on the light")
    two = api.embed("home-embed", ["turn on the light", "lock the door"])
    equal(list(two.embeddings[0]), list(one.embeddings[0]))
    equal(len(two.embeddings), 2)
    equal(len(api.embed("home-embed", "a light", dimensions=32).embeddings[0]), 32)
    assert max(abs(a - b) for a, b in zip(api.embeddings("home-embed", "turn on the light").embedding, one.embeddings[0])) < 1e-5


@call("chat, generate", "logprobs and top_logprobs of each token")
def _():
    wanted = {"logprobs": True, "top_logprobs": 2, "options": {**COLD, "num_predict": 5}}
    chat = api.chat(CHAT, messages=HELLO, **wanted)
    equal(len(chat.logprobs), chat.eval_count)
    equal("".join(t.token for t in chat.logprobs), chat.message.content)
    assert all(t.logprob <= 0 and len(t.top_logprobs) >= 2 for t in chat.logprobs)
    parts = [t for p in api.chat(CHAT, messages=HELLO, stream=True, **wanted) for t in p.logprobs or []]
    equal([t.logprob for t in parts], [t.logprob for t in chat.logprobs])
    raw = api.generate(CHAT, "The kitchen", raw=True, **wanted)
    assert "".join(t.token for t in raw.logprobs).startswith(raw.response)  # the end token has no text in it
    equal(api.chat(CHAT, messages=HELLO, options=COLD).logprobs, None)


@call("chat, generate", "what is not offered is refused by name", differs="context is 400: a conversation is its messages")
def _():
    with rejects(ollama.ResponseError, "does not support thinking") as e:
        api.chat(CHAT, messages=HELLO, think=True)
    equal(e.error.status_code, 400)
    assert api.chat(CHAT, messages=HELLO, think=False, options=COLD).message.content
    with rejects(ollama.ResponseError, '"context" is not offered'):
        api.generate(CHAT, "hello", context=[1, 2])


@call("embed", "a text that is too long is cut unless truncate is false; an empty list")
def _():
    long = "word " * 500
    equal(api.embed("home-embed", long).embeddings, api.embed("home-embed", long + "word", truncate=True).embeddings)
    with rejects(ollama.ResponseError) as e:
        api.embed("home-embed", long, truncate=False)
    equal(e.error.status_code, 400)
    equal(list(api.embed("home-embed", []).embeddings), [])


@call("list, show, ps", "sizes, parameters and times are the files'; what is served is pulled already, and not deleted")
def _():
    listed = {m.model: m for m in api.list().models}
    for name in (CHAT, "plain"):
        m = listed[name]
        assert m.size > 100000 and m.details.parameter_size and m.details.quantization_level and m.modified_at.year > 2000
    running = api.ps().models
    assert {"plain", CHAT} <= {m.model for m in running}
    assert all(m.size > 0 and m.context_length and m.expires_at.year > 2000 for m in running if m.model in (CHAT, "plain"))
    assert all(m.details.family for m in running)  # neither routes nor ensembles
    equal(api.pull("plain").status, "success")
    equal([p.status for p in api.pull("plain", stream=True)][-1], "success")
    with rejects(ollama.ResponseError, "not pulled into the store, but is served from another file"):
        api.delete("plain")
    root = httpx.get(URL)
    equal((root.text, httpx.head(URL).status_code), ("Ollama is running", 200))
    assert "<html" in httpx.get(URL, headers={"accept": "text/html,*/*"}).text


@call("list, show, ps", "what is there")
def _():
    names = [m.model for m in api.list().models]
    assert any(n.startswith(CHAT) for n in names), names
    shown = api.show(CHAT)
    assert "completion" in shown.capabilities and shown.modelinfo and shown.details.family
    assert "embedding" in api.show("home-embed").capabilities
    assert any(m.model.startswith(CHAT) for m in api.ps().models)


@call("chat, generate, show, embed", "what is wrong is ResponseError with Ollama's status")
def _():
    for wrong in (lambda: api.chat("nope", messages=HELLO), lambda: api.generate("nope", "a"), lambda: api.show("nope"), lambda: api.embed("nope", "a")):
        with rejects(ollama.ResponseError, "nope") as e:
            wrong()
        equal(e.error.status_code, 404)
    with rejects(ollama.ResponseError, "does not support insert") as e:
        api.generate(CHAT, "a", suffix="b")
    equal(e.error.status_code, 400)


@call("create, copy, delete", "models made of others")
def _():
    api.copy(CHAT, "mine")
    api.create("terse", from_=CHAT, parameters={"temperature": 0}, system="You are terse.")
    names = {m.model for m in api.list().models}
    assert {"mine:latest", "terse:latest"} <= names or {"mine", "terse"} <= names, names
    equal(api.chat("mine", messages=HELLO, options=COLD).message.content, api.chat(CHAT, messages=HELLO, options=COLD).message.content)
    assert "You are terse." in api.show("terse").modelfile
    own = "{{ range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n"
    api.create("own", from_=CHAT, template=own)
    equal(api.show("own").template, own)
    equal(api.chat("own", messages=HELLO, options=COLD).message.content, api.chat(CHAT, messages=HELLO, options=COLD).message.content)
    equal(api.generate(CHAT, HELLO[0]["content"], template=own, options=COLD).response, api.chat(CHAT, messages=HELLO, options=COLD).message.content)
    with rejects(ollama.ResponseError, "line 1") as e:
        api.create("own", from_=CHAT, template="{{ .Prompt }")
    equal(e.error.status_code, 400)
    for name in ("mine", "terse", "own"):
        api.delete(name)
        with rejects(ollama.ResponseError, name) as e:
            api.chat(name, messages=HELLO)
        equal(e.error.status_code, 404)


@call("push", "a model sent to Ollama's library", differs="there is no library to send it to: 404")
def _():
    with rejects(ollama.ResponseError) as e:
        api.push(CHAT)
    equal(e.error.status_code, 404)


@call("AsyncClient", "16 at once, and a stream")
async def _():
    many = AsyncClient(host=URL)
    want = api.chat(CHAT, messages=HELLO, options=COLD).message.content
    got = await asyncio.gather(*(many.chat(CHAT, messages=HELLO, options=COLD) for _ in range(16)))
    equal({r.message.content for r in got}, {want})
    equal("".join([p.message.content async for p in await many.chat(CHAT, messages=HELLO, options=COLD, stream=True)]), want)
