"""OpenAI's own package, unmodified; run with a version of each of its generations (1, 2 and 3)."""

import asyncio
import base64
import json
import math
import struct
import time
from typing import Literal, Optional

import httpx
import openai
from calls import URL, V1, client, equal, rejects
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

call = client("openai")
generation = int(openai.__version__.split(".")[0])
# Answers must be what the package's types say. `loose` is for what they have otherwise than OpenAI itself: null as a first
# token's log-probability and as the reason of a stream that goes on, base64 for vectors; and for labels of moderations.
api = OpenAI(base_url=V1, api_key="none", max_retries=0, _strict_response_validation=True)
loose = OpenAI(base_url=V1, api_key="none", max_retries=0)
parse = (api.chat if generation > 1 else api.beta.chat).completions.parse
stream_of = (api.chat if generation > 1 else api.beta.chat).completions.stream
stores = api.vector_stores if generation > 1 else api.beta.vector_stores
HOME = "You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on"
OFF = [{"role": "system", "content": HOME}, {"role": "user", "content": "turn off the kitchen light"}]
ON = [{"role": "system", "content": HOME}, {"role": "user", "content": "turn on the kitchen light"}]
HELLO = [{"role": "user", "content": "hello"}]
WAV = "tests/data/speech/wav/08-lights-on.wav"


def tool(function, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "function", "function": {"name": function, "description": function, "parameters": parameters}}


TOOLS = [tool("HassTurnOn", name={"type": "string", "maxLength": 30}), tool("HassTurnOff", name={"type": "string", "maxLength": 30})]


def ask(messages=OFF, model="home-chat-s", temperature=0, max_tokens=96, **more):
    return api.chat.completions.create(model=model, messages=messages, temperature=temperature, max_tokens=max_tokens, **more)


# ---- models ------------------------------------------------------------------------------------------------


@call("models.list, retrieve", "the models are listed, and an unknown one is NotFoundError")
def _():
    names = [m.id for m in api.models.list()]
    for name in ("home-intent", "home-slots", "home-embed", "home-chat-s", "home-chat-m", "home-ears"):
        assert name in names, name
    one = api.models.retrieve("home-chat-s")
    equal((one.id, one.object), ("home-chat-s", "model"))
    with rejects(openai.NotFoundError) as e:
        api.models.retrieve("nope")
    equal((e.error.status_code, e.error.code, e.error.type), (404, "model_not_found", "invalid_request_error"))


@call("chat.completions, embeddings, audio.transcriptions", "names of OpenAI's models, as aliases; the reply has the name that was asked for")
def _():
    equal(ask(HELLO, model="gpt-4o-mini", max_tokens=4).model, "gpt-4o-mini")
    equal({chunk.model for chunk in ask(HELLO, model="openai/gpt-4o", max_tokens=4, stream=True)}, {"openai/gpt-4o"})
    vectors = loose.embeddings.create(model="text-embedding-3-small", input=["hello"])
    equal((vectors.model, len(vectors.data)), ("text-embedding-3-small", 1))
    with open(WAV, "rb") as f:
        assert "light" in api.audio.transcriptions.create(model="whisper-1", file=f).text.lower()
    equal(api.models.retrieve("openai/gpt-4o").id, "openai/gpt-4o")
    assert {"gpt-4o-mini", "whisper-1"} <= {m.id for m in api.models.list()}


# ---- chat --------------------------------------------------------------------------------------------------


@call("chat.completions.create", "a reply, its end and its usage")
def _():
    r = ask(HELLO)
    equal((r.object, r.model, r.choices[0].message.role, r.choices[0].finish_reason), ("chat.completion", "home-chat-s", "assistant", "stop"))
    assert r.choices[0].message.content and r.choices[0].message.tool_calls is None
    equal(r.usage.total_tokens, r.usage.prompt_tokens + r.usage.completion_tokens)
    equal(ask(HELLO).choices[0].message.content, r.choices[0].message.content)


@call("chat.completions.create", "a stream gives what the whole gives, with usage at its end")
def _():
    for messages in (HELLO, OFF):
        whole = ask(messages)
        text, calls, finish, usage = "", {}, None, None
        for c in ask(messages, stream=True, stream_options={"include_usage": True}):
            equal(c.object, "chat.completion.chunk")
            usage = c.usage or usage
            for choice in c.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
                for t in choice.delta.tool_calls or []:
                    known = calls.setdefault(t.index, ["", ""])
                    known[0] += t.function.name or ""
                    known[1] += t.function.arguments or ""
        m = whole.choices[0].message
        equal((text, finish), (m.content or "", whole.choices[0].finish_reason))
        equal(list(calls.values()), [[t.function.name, t.function.arguments] for t in m.tool_calls or []])
        equal((usage.prompt_tokens, usage.completion_tokens), (whole.usage.prompt_tokens, whole.usage.completion_tokens))


@call("chat.completions.stream", "the client's accumulator comes to what the whole answer is")
def _():
    more = dict(model="home-chat-s", messages=OFF, temperature=0, max_tokens=96, tool_choice="own")
    with stream_of(**more) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    want = ask(tool_choice="own")
    equal(final.choices[0].message.tool_calls[0].function.name, want.choices[0].message.tool_calls[0].function.name)
    equal(final.choices[0].finish_reason, "tool_calls")
    assert "chunk" in kinds


@call("chat.completions.create", "tool_choice auto, none, required and a name, streamed too")
def _():
    for model in ("home-chat-s", "plain"):
        for seed in range(3):
            more = dict(messages=ON, model=model, tools=TOOLS, temperature=1.2 if seed else 0, seed=seed, max_tokens=128)
            for choice in ask(**more).choices[0].message.tool_calls or []:
                assert choice.function.name in ("HassTurnOn", "HassTurnOff")
            equal(ask(**more, tool_choice="none").choices[0].message.tool_calls, None)
            for wanted in ("required", {"type": "function", "function": {"name": "HassTurnOff"}}):
                got = ask(**more, tool_choice=wanted).choices[0]
                equal(got.finish_reason, "tool_calls")
                one = got.message.tool_calls[0]
                assert one.id and one.type == "function" and got.message.content is None
                assert one.function.name == "HassTurnOff" or wanted == "required", one.function.name
                equal(list(json.loads(one.function.arguments)), ["name"])
                arguments = ""
                for c in ask(**more, tool_choice=wanted, stream=True):
                    for t in c.choices[0].delta.tool_calls or []:
                        arguments += t.function.arguments or ""
                    assert not c.choices[0].delta.content
                equal(arguments, one.function.arguments)


@call("chat.completions.create", "parallel_tool_calls false calls once")
def _():
    r = ask(ON, tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    equal(len(r.choices[0].message.tool_calls), 1)


@call("chat.completions.create", "a call is sent back as it came, with its result")
def _():
    first = ask(tool_choice="own")
    message = first.choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": '{"ok": true, "state": "off"}'}
    r = ask([*OFF, message, result])
    equal(r.choices[0].finish_reason, "stop")
    assert r.choices[0].message.content


class Light(BaseModel):
    on: bool
    room: Literal["kitchen", "attic"]
    dim: Optional[int]


@call("chat.completions.parse", "a pydantic model: Literal and Optional")
def _():
    for model in ("home-chat-s", "plain"):
        r = parse(model=model, messages=HELLO, response_format=Light, temperature=1, seed=7, max_tokens=100)
        assert isinstance(r.choices[0].message.parsed, Light)


@call("chat.completions.parse", "pydantic_function_tool: the arguments are the model's object")
def _():
    r = parse(model="plain", messages=HELLO, tools=[openai.pydantic_function_tool(Light)], tool_choice="required", temperature=1, seed=3, max_tokens=100)
    assert isinstance(r.choices[0].message.tool_calls[0].function.parsed_arguments, Light)


@call("chat.completions.parse", "a reply that is cut is LengthFinishReasonError")
def _():
    with rejects(openai.LengthFinishReasonError):
        parse(model="plain", messages=HELLO, response_format=Light, max_tokens=3)


@call("chat.completions.create", "json_object gives JSON")
def _():
    r = ask(HELLO, model="home-chat-m", response_format={"type": "json_object"}).choices[0]
    equal(r.finish_reason, "stop")
    assert isinstance(json.loads(r.message.content), dict), r.message.content


@call("chat.completions.create", "logprobs and 20 top_logprobs, of the token that ends the turn as well")
def _():
    r = ask(HELLO, logprobs=True, top_logprobs=20)
    tokens = r.choices[0].logprobs.content
    equal("".join(t.token for t in tokens), r.choices[0].message.content + "<|im_end|>")
    equal(len(tokens), r.usage.completion_tokens)
    for t in tokens:
        equal(len(t.top_logprobs), 20)
        assert t.logprob <= 0 and t.logprob == t.top_logprobs[0].logprob


@call("chat.completions.create", "n, seed, stop, penalties, logit_bias, and fields that change nothing here")
def _():
    hot = dict(messages=HELLO, model="plain", temperature=1.3, max_tokens=12, seed=11)
    two = ask(**hot, n=2).choices
    equal([c.index for c in two], [0, 1])
    assert two[0].message.content != two[1].message.content
    equal(two[0].message.content, ask(**hot).choices[0].message.content)
    cut = ask(HELLO).choices[0].message.content
    for stop in (cut[2:4], [cut[2:4], "never this"]):
        equal(ask(HELLO, stop=stop).choices[0].message.content, cut[: cut.index(cut[2:4])])
    ask(HELLO, presence_penalty=0.5, frequency_penalty=-0.5, logit_bias={"5": -100}, user="someone", extra_body={
        "store": False, "metadata": {"a": "b"}, "service_tier": "auto", "verbosity": "low", "prediction": {"type": "content", "content": "hi"}})
    r = ask(HELLO, max_tokens=openai.NOT_GIVEN, extra_body={"max_completion_tokens": 2})
    equal((r.choices[0].finish_reason, r.usage.completion_tokens), ("length", 2))


@call("chat.completions.create", "developer messages, parts of text, and names")
def _():
    parts = [{"role": "system", "content": [{"type": "text", "text": HOME}]}, {"role": "user", "name": "ann", "content": [{"type": "text", "text": "turn off the "}, {"type": "text", "text": "kitchen light"}]}]
    want = ask(tool_choice="own").choices[0].message.tool_calls[0].function
    equal(ask(parts, tool_choice="own").choices[0].message.tool_calls[0].function, want)
    parts[0] = {"role": "developer", "content": HOME}
    equal(ask(parts, tool_choice="own").choices[0].message.tool_calls[0].function, want)


@call("chat.completions.create", "what is wrong is BadRequestError and names the field")
def _():
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]
    with rejects(openai.BadRequestError) as e:
        ask(picture)
    equal(e.error.status_code, 400)
    with rejects(openai.BadRequestError, "temperature"):
        ask(HELLO, temperature=3)
    with rejects(openai.BadRequestError, "messages"):
        ask([])
    with rejects(openai.BadRequestError, "home-embed"):
        ask(HELLO, model="home-embed")
    with rejects(openai.NotFoundError) as e:
        ask(HELLO, model="nope")
    equal(e.error.code, "model_not_found")


@call("chat.completions.create", "without max_tokens a reply goes to the end of the context, and is not lost")
def _():
    r = ask(HELLO, model="plain", temperature=1, seed=2, max_tokens=openai.NOT_GIVEN, extra_body={"ignore_eos": True})
    equal(r.choices[0].finish_reason, "length")
    equal(r.usage.total_tokens, 2048)
    assert len(r.choices[0].message.content) > 1000


@call("chat.completions.create", "a forced call that is cut shows no marks")
def _():
    for tokens in (1, 3, 10):
        got = ask(ON, tools=TOOLS, tool_choice="required", max_tokens=tokens).choices[0]
        equal(got.finish_reason, "length")
        assert not got.message.content, got.message.content
        text = "".join(c.choices[0].delta.content or "" for c in ask(ON, tools=TOOLS, tool_choice="required", max_tokens=tokens, stream=True))
        equal(text, "")


ON_OFF = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": False}


@call("chat.completions.create", "a schema by the names that other servers have: schema, value, guided_json, guided_choice, structured_outputs")
def _():
    hot = dict(messages=HELLO, model="plain", temperature=1, max_tokens=40)
    for more in (
        {"response_format": {"type": "json_object", "schema": ON_OFF}},
        {"response_format": {"type": "json_object", "value": ON_OFF}},
        {"json_schema": ON_OFF},
        {"guided_json": ON_OFF},
        {"structured_outputs": {"json": ON_OFF}},
    ):
        equal(list(json.loads(ask(**hot, extra_body=more).choices[0].message.content)), ["on"])
    for more in ({"guided_choice": ["yes", "no"]}, {"structured_outputs": {"choice": ["yes", "no"]}}):
        assert ask(**hot, extra_body=more).choices[0].message.content in ("yes", "no")


@call("chat.completions.create", "functions and function_call, the older form of tools")
def _():
    functions = [t["function"] for t in TOOLS]
    r = ask(ON, model="plain", functions=functions, function_call={"name": "HassTurnOff"}, temperature=1, max_tokens=128).choices[0]
    equal((r.finish_reason, r.message.function_call.name), ("function_call", "HassTurnOff"))
    equal(list(json.loads(r.message.function_call.arguments)), ["name"])
    back = [*ON, r.message, {"role": "function", "name": "HassTurnOff", "content": "off"}]
    assert ask(back, functions=functions, function_call="none").choices[0].message.function_call is None


@call("chat.completions.create", "an unknown model's NotFoundError lists those that there are")
def _():
    with rejects(openai.NotFoundError, "home-chat-s"):
        ask(HELLO, model="gpt-4o")


# ---- completions, embeddings, moderations --------------------------------------------------------------------


@call("completions.create", "a text, texts, token ids, echo, logprobs, a stream")
def _():
    more = dict(model="home-chat-s", temperature=0, max_tokens=8)
    one = loose.completions.create(prompt="The kitchen", **more)
    two = loose.completions.create(prompt=["The kitchen", "The hall"], **more)
    equal([c.index for c in two.choices], [0, 1])
    equal(two.choices[0].text, one.choices[0].text)
    equal("".join(c.choices[0].text for c in loose.completions.create(prompt="The kitchen", stream=True, **more)), one.choices[0].text)
    echo = loose.completions.create(model="home-chat-s", prompt="The kitchen", temperature=0, max_tokens=0, echo=True, logprobs=5)
    p = echo.choices[0].logprobs
    equal((echo.choices[0].text, "".join(p.tokens), p.token_logprobs[0]), ("The kitchen", "The kitchen", None))
    assert all(x <= 0 for x in p.token_logprobs[1:])
    ids = loose.completions.create(prompt=[5, 6, 7], **more)
    lists = loose.completions.create(prompt=[[5, 6, 7], [8]], **more)
    equal(lists.choices[0].text, ids.choices[0].text)
    equal(ids.usage.prompt_tokens, 3)
    with rejects(openai.BadRequestError, "suffix"):
        loose.completions.create(prompt="a", suffix="b", **more)


@call("embeddings.create", "the default (base64), floats, a list, fewer dimensions")
def _():
    text = "turn on the light"
    default = loose.embeddings.create(model="home-embed", input=text).data[0].embedding
    floats = loose.embeddings.create(model="home-embed", input=[text, "lock the door"], encoding_format="float")
    assert max(abs(a - b) for a, b in zip(default, floats.data[0].embedding)) < 1e-6
    equal([d.index for d in floats.data], [0, 1])
    assert abs(math.sqrt(sum(x * x for x in default)) - 1) < 1e-4
    packed = loose.embeddings.create(model="home-embed", input=text, encoding_format="base64").data[0].embedding
    if isinstance(packed, str):
        packed = struct.unpack(f"<{len(default)}f", base64.b64decode(packed))
    assert max(abs(a - b) for a, b in zip(default, packed)) < 1e-6
    equal(len(loose.embeddings.create(model="home-embed", input=text, dimensions=32).data[0].embedding), 32)


@call("embeddings.create", "token ids, and lists of them; those of another vocabulary are refused")
def _():
    one = loose.embeddings.create(model="home-embed", input=[5, 6, 7])
    two = loose.embeddings.create(model="home-embed", input=[[5, 6, 7], [8]])
    equal((one.usage.prompt_tokens, two.usage.prompt_tokens), (3, 4))
    equal(two.data[0].embedding, one.data[0].embedding)
    with rejects(openai.BadRequestError, "check_embedding_ctx_length"):
        api.embeddings.create(model="home-embed", input=[1, 100000])


@call("moderations.create", "a text, texts, and a model's name of OpenAI's")
def _():
    r = loose.moderations.create(input="turn on the light")
    assert r.results[0].flagged in (True, False)
    r = loose.moderations.create(input=["set an alarm for six", "play jazz"], model="omni-moderation-latest")
    equal(len(r.results), 2)


# ---- audio -------------------------------------------------------------------------------------------------


@call("audio.transcriptions.create", "json, text, srt, vtt and verbose_json")
def _():
    def hear(**more):
        with open(WAV, "rb") as f:
            return (loose if more.get("response_format") in ("text", "srt", "vtt") else api).audio.transcriptions.create(model="home-ears", file=f, **more)

    heard = hear()
    text = heard.text
    if generation > 1:
        equal(heard.usage.type, "duration")
        assert heard.usage.seconds > 0.5
    assert "light" in text.lower(), text
    equal(str(hear(response_format="text")).strip(), text.strip())
    assert "-->" in hear(response_format="srt") and hear(response_format="vtt").startswith("WEBVTT")
    verbose = hear(response_format="verbose_json", timestamp_granularities=["segment"])
    equal("".join((s["text"] if isinstance(s, dict) else s.text) for s in verbose.segments).strip(), text.strip())
    assert float(verbose.duration) > 0
    with rejects(openai.BadRequestError, "word"):
        hear(response_format="verbose_json", timestamp_granularities=["word"])
    if generation > 1:
        with open(WAV, "rb") as f:
            events = list(api.audio.transcriptions.create(model="home-ears", file=f, stream=True))
        equal(events[-1].type, "transcript.text.done")
        equal(events[-1].text.strip(), text.strip())
        equal("".join(e.delta for e in events[:-1]).strip(), text.strip())


@call("images.generate, audio.speech.create", "pictures and speech", differs="no model here draws or speaks: NotFoundError")
def _():
    with rejects(openai.NotFoundError):
        api.images.generate(model="home-chat-s", prompt="a cat")
    with rejects(openai.NotFoundError):
        api.audio.speech.create(model="home-chat-s", input="hi", voice="alloy")


# ---- files and vector stores -------------------------------------------------------------------------------


@call("files.create, retrieve, content, list, delete", "a file is uploaded, read, listed by pages and deleted")
def _():
    made = [api.files.create(file=(f"note-{i}.txt", b"note %d" % i), purpose="assistants") for i in range(3)]
    equal((made[1].filename, made[1].bytes, made[1].purpose), ("note-1.txt", 6, "assistants"))
    equal(api.files.retrieve(made[1].id).id, made[1].id)
    equal(api.files.content(made[1].id).read(), b"note 1")
    listed = [f.id for f in api.files.list(**({"limit": 1} if generation > 1 else {}))]
    equal(sorted(set(listed)), sorted(listed))
    assert all(f.id in listed for f in made)
    for f in made:
        equal(api.files.delete(f.id).deleted, True)
    with rejects(openai.NotFoundError):
        api.files.retrieve(made[0].id)


def batch_of(lines, endpoint, **more):
    """The batch of these lines, once it has ended, and the lines of its two files by custom_id."""
    data = "".join(json.dumps({"method": "POST", "url": endpoint, **line}) + "\n" for line in lines).encode()
    file = api.files.create(file=("in.jsonl", data), purpose="batch")
    made = api.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h", metadata={"for": "tests"}, **more)
    equal((made.object, made.endpoint, made.input_file_id, made.metadata), ("batch", endpoint, file.id, {"for": "tests"}))
    for _ in range(600):
        b = api.batches.retrieve(made.id)
        if b.status in ("completed", "failed", "expired", "cancelled"):
            break
        time.sleep(0.05)
    read = lambda id: {line["custom_id"]: line for line in map(json.loads, api.files.content(id).text.splitlines())} if id else {}
    return b, read(b.output_file_id), read(b.error_file_id)


@call("batches.create, retrieve, list", "each line of a file is answered, or has an error, under its custom_id")
def _():
    chat = {"model": "home-chat-s", "messages": HELLO, "temperature": 0, "max_tokens": 8}
    b, out, errors = batch_of([{"custom_id": "a", "body": chat}, {"custom_id": "b", "body": {**chat, "model": "no-such"}}], "/v1/chat/completions")
    equal((b.status, b.request_counts.total, b.request_counts.completed, b.request_counts.failed), ("completed", 2, 1, 1))
    ours = ask(HELLO, max_tokens=8).choices[0].message.content
    equal((out["a"]["response"]["status_code"], out["a"]["response"]["body"]["choices"][0]["message"]["content"], out["a"]["error"]), (200, ours, None))
    equal(errors["b"]["response"]["body"]["error"]["code"], "model_not_found")
    for endpoint, body in (("/v1/embeddings", {"model": "home-embed", "input": "x"}), ("/v1/completions", {**chat, "prompt": "x"}), ("/v1/responses", {"model": "home-chat-s", "input": "x"})):
        done, out, _ = batch_of([{"custom_id": "a", "body": body}], endpoint)
        equal((done.status, out["a"]["response"]["status_code"]), ("completed", 200))
    listed = [x.id for x in api.batches.list(limit=2)]
    assert b.id in listed and len(set(listed)) == len(listed) >= 4
    assert b.output_file_id in [f.id for f in api.files.list(purpose="batch_output")]


@call("batches.create, cancel", "faults are told by line; what has not run when it is cancelled has an error; deleted files are gone")
def _():
    b, _, _ = batch_of([{"custom_id": "a", "body": {}}, {"custom_id": "a", "body": {}}, {"custom_id": "c"}], "/v1/embeddings")
    equal((b.status, sorted((e.line, e.code) for e in b.errors.data)), ("failed", [(2, "duplicate_custom_id"), (3, "missing_required_parameter")]))
    with rejects(openai.NotFoundError, "no such file"):
        api.batches.create(input_file_id="file-1", endpoint="/v1/embeddings", completion_window="24h")
    with rejects(openai.BadRequestError, "has ended"):
        api.batches.cancel(b.id)
    body = {"model": "home-chat-s", "messages": HELLO, "ignore_eos": True, "max_tokens": 200}
    data = "".join(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/chat/completions", "body": body}) + "\n" for i in range(50))
    file = api.files.create(file=("in.jsonl", data.encode()), purpose="batch")
    made = api.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    equal(api.batches.cancel(made.id).status, "cancelling")
    while (b := api.batches.retrieve(made.id)).status == "cancelling":
        time.sleep(0.05)
    equal((b.status, b.request_counts.completed + b.request_counts.failed), ("cancelled", b.request_counts.total))
    equal(api.files.delete(file.id).deleted, True)


@call("vector_stores.*", "a file is put in, found, and leaves again; stores and files are listed by pages")
def _():
    store = stores.create(name="House", metadata={"floor": "1"})
    equal((store.object, store.name, store.status, store.metadata), ("vector_store", "House", "completed", {"floor": "1"}))
    manual = b"# Boiler\n## Radiators\nBleed the radiators every autumn.\n## Pressure\nKeep it between one and two bar.\n"
    put = stores.files.upload_and_poll(vector_store_id=store.id, file=("boiler.md", manual))
    equal((put.status, put.vector_store_id), ("completed", store.id))
    file = api.files.create(file=("key.txt", b"The spare key hangs behind the meter."), purpose="assistants")
    stores.files.create_and_poll(vector_store_id=store.id, file_id=file.id)
    equal(stores.retrieve(store.id).file_counts.completed, 2)
    equal(sorted(f.id for f in stores.files.list(store.id, limit=1)), sorted([put.id, file.id]))
    if generation > 1:
        found = stores.search(store.id, query="when are radiators bled?", max_num_results=2)
        equal(found.data[0].filename, "boiler.md")
        assert "Bleed the radiators" in found.data[0].content[0].text
        content = stores.files.content(put.id, vector_store_id=store.id)
        assert "Keep it between one and two bar." in "".join(c.text for c in content)
        changed = stores.files.update(put.id, vector_store_id=store.id, attributes={"room": "cellar"})
        equal((changed.id, changed.attributes), (put.id, {"room": "cellar"}))
        for room, n in (("cellar", 1), ("attic", 0)):
            found = stores.search(store.id, query="radiators", filters={"type": "eq", "key": "room", "value": room})
            equal(len({r.file_id for r in found.data}), n)
    equal(stores.update(store.id, name="Home").name, "Home")
    equal((stores.retrieve(store.id).metadata, stores.update(store.id, metadata={"floor": "2"}).metadata), ({"floor": "1"}, {"floor": "2"}))
    for wrong, why in (({"order": "desc"}, "ascending"), ({"before": store.id}, "before")):
        for paged in (lambda: stores.list(**wrong), lambda: stores.files.list(store.id, **wrong)):
            with rejects(openai.BadRequestError, why):
                paged()
    with rejects(openai.BadRequestError, "expires_after"):
        stores.create(name="a", expires_after={"anchor": "last_active_at", "days": 1})
    equal(stores.files.delete(file.id, vector_store_id=store.id).deleted, True)
    equal([f.id for f in stores.files.list(store.id)], [put.id])
    equal(stores.delete(store.id).deleted, True)
    with rejects(openai.NotFoundError):
        stores.retrieve(store.id)
    for id in (put.id, file.id):
        api.files.delete(id)


# ---- the client itself -------------------------------------------------------------------------------------


@call("with_raw_response, with_streaming_response", "headers and bodies as they came")
def _():
    raw = api.chat.completions.with_raw_response.create(model="home-chat-s", messages=HELLO, temperature=0, max_tokens=8)
    equal(raw.http_response.status_code, 200)
    assert raw.headers["x-request-id"]
    if generation > 1:
        equal(raw.parse()._request_id, raw.headers["x-request-id"])
    assert raw.parse().choices[0].message.content
    with api.chat.completions.with_streaming_response.create(model="home-chat-s", messages=HELLO, temperature=0, max_tokens=8) as r:
        equal(json.loads(b"".join(r.iter_bytes()))["object"], "chat.completion")


@call("AsyncOpenAI", "50 streams at once are each what one alone is")
async def _():
    want = ask(HELLO, max_tokens=24).choices[0].message.content
    async with AsyncOpenAI(base_url=V1, api_key="none", max_retries=0, _strict_response_validation=True) as many:

        async def one():
            text = ""
            async for c in await many.chat.completions.create(model="home-chat-s", messages=HELLO, temperature=0, max_tokens=24, stream=True):
                text += c.choices[0].delta.content or "" if c.choices else ""
            return text

        equal(set(await asyncio.gather(*(one() for _ in range(50)))), {want})


@call("AsyncOpenAI, APITimeoutError", "a call that is cancelled and one that runs out of time end their requests")
async def _():
    long = dict(model="plain", messages=HELLO, max_tokens=1500, temperature=1, extra_body={"ignore_eos": True}, extra_headers={"cache-control": "no-store"})
    async with AsyncOpenAI(base_url=V1, api_key="none", max_retries=0, _strict_response_validation=True) as many, httpx.AsyncClient() as http:
        try:
            await many.with_options(timeout=httpx.Timeout(30, read=0.001)).chat.completions.create(**long)
            raise AssertionError("1,500 tokens took less than a millisecond")
        except openai.APITimeoutError:
            pass
        stream = await many.chat.completions.create(**long, stream=True)
        task = asyncio.ensure_future(many.chat.completions.create(**long))
        async for _ in stream:
            break
        task.cancel()
        await stream.close()
        for _ in range(600):  # a server under load may take a while to see it
            if (await http.get(URL + "/v1/status")).json()["requests_in_flight"] <= 1:
                return
            await asyncio.sleep(0.05)
    raise AssertionError("the requests go on")


@call("max_retries", "a 503 is asked again, as often as the client is told, and what is final is not")
def _():
    asked = []

    class Counts(httpx.HTTPTransport):
        def handle_request(self, request):
            asked.append(request.url.path)
            if len(asked) <= 2 and request.url.path.endswith("/chat/completions"):
                return httpx.Response(503, headers={"retry-after-ms": "1"}, json={"error": {"message": "busy", "type": "server_error"}})
            return super().handle_request(request)

    again = OpenAI(base_url=V1, api_key="none", max_retries=2, http_client=httpx.Client(transport=Counts()))
    assert again.chat.completions.create(model="home-chat-s", messages=HELLO, temperature=0, max_tokens=8).choices
    equal(len(asked), 3)
    asked[:] = [0, 0, 0]
    with rejects(openai.BadRequestError):
        again.chat.completions.create(model="home-chat-s", messages=HELLO, temperature=9)
    equal(len(asked), 4)


@call("base_url", "the address without /v1 is as good, for chat")
def _():
    r = OpenAI(base_url=URL, api_key="none").chat.completions.create(model="home-chat-s", messages=HELLO, temperature=0, max_tokens=8)
    assert r.choices[0].message.content


# ---- responses ---------------------------------------------------------------------------------------------

if generation > 1:

    @call("responses.create, retrieve, delete", "a response goes on with another, is read and deleted")
    def _():
        first = api.responses.create(model="home-chat-s", instructions=HOME, input="turn off the kitchen light", temperature=0, max_output_tokens=96, tool_choice="own")
        equal((first.object, first.status, first.output[-1].type, first.output[-1].name), ("response", "completed", "function_call", "light.turn_off"))
        output = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": '{"ok": true}'}
        second = api.responses.create(model="home-chat-s", previous_response_id=first.id, input=[output], temperature=0, max_output_tokens=96)
        assert second.output_text
        equal(second.previous_response_id, first.id)
        equal(api.responses.retrieve(second.id).output_text, second.output_text)
        api.responses.delete(second.id)
        with rejects(openai.NotFoundError):
            api.responses.retrieve(second.id)

    @call("responses.input_tokens.count", "the tokens that a response reads")
    def _():
        more = dict(model="home-chat-s", input="turn off the kitchen light", instructions=HOME, tools=[{"type": "function", "strict": True, **t["function"]} for t in TOOLS])
        counted = api.post("/responses/input_tokens", body=more, cast_to=object)
        equal(counted["object"], "response.input_tokens")
        equal(counted["input_tokens"], api.responses.create(**more, max_output_tokens=8).usage.input_tokens)
        with rejects(openai.BadRequestError, "home-chat-s"):  # which of several models is not said
            api.post("/responses/input_tokens", body={"input": "hello"}, cast_to=object)

    @call("responses.create, chat.completions.create", "tool_choice allowed_tools offers these tools alone")
    def _():
        flat = [{"type": "function", "strict": True, **t["function"]} for t in TOOLS]
        allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "HassTurnOff"}]}
        for seed in range(3):
            r = api.responses.create(model="plain", input=f"hello {seed}", tools=flat, tool_choice=allowed, temperature=1, max_output_tokens=128)
            equal([o.name for o in r.output if o.type == "function_call"], ["HassTurnOff"])
        nested = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "HassTurnOn"}}]}}
        r = api.chat.completions.create(model="plain", messages=HELLO, tools=TOOLS, tool_choice=nested, temperature=1, max_tokens=128)
        equal([c.function.name for c in r.choices[0].message.tool_calls], ["HassTurnOn"])
        nested["allowed_tools"]["tools"][0]["function"]["name"] = "other"
        with rejects(openai.BadRequestError, "allowed tool 0"):
            api.chat.completions.create(model="plain", messages=HELLO, tools=TOOLS, tool_choice=nested)

    @call("responses.create", "an unknown value of include is refused, those of hosted tools are of no effect")
    def _():
        api.responses.create(model="home-chat-s", input="hello", include=["reasoning.encrypted_content"], max_output_tokens=8)
        with rejects(openai.BadRequestError, "include[0]"):
            api.responses.create(model="home-chat-s", input="hello", include=["everything"])

    @call("responses.input_items.list", "what a response was asked, by pages, in either order")
    def _():
        asked = [{"role": "user", "content": "turn off the light"}, {"role": "assistant", "content": "Which one?"}, {"role": "user", "content": [{"type": "input_text", "text": "the kitchen light"}]}]
        made = api.responses.create(model="home-chat-s", input=asked, max_output_tokens=8)
        listed = list(api.responses.input_items.list(made.id, order="asc"))
        equal([(i.type, i.role, i.content[0].text) for i in listed], [("message", "user", "turn off the light"), ("message", "assistant", "Which one?"), ("message", "user", "the kitchen light")])
        ids = [i.id for i in listed]
        equal([i.id for i in api.responses.input_items.list(made.id)], ids[::-1])
        page = api.responses.input_items.list(made.id, limit=2, order="asc")
        equal(([i.id for i in page.data], page.has_more, page.first_id, page.last_id), (ids[:2], True, ids[0], ids[1]))
        equal([i.id for i in api.responses.input_items.list(made.id, limit=1, order="asc")], ids)
        equal([i.id for i in api.responses.input_items.list(made.id, order="asc", extra_query={"before": ids[1]}).data], ids[:1])
        said = api.responses.create(model="home-chat-s", input="hello", max_output_tokens=8)
        equal([i.content[0].text for i in api.responses.input_items.list(said.id)], ["hello"])
        with rejects(openai.NotFoundError):
            api.responses.input_items.list("resp_none")
        with rejects(openai.NotFoundError, "no item"):
            api.responses.input_items.list(made.id, after="msg_none")

    @call("responses.create", "truncation: auto drops the oldest turns of the input; without it a long one is refused")
    def _():
        turns = [m for i in range(60) for m in ({"role": "user", "content": f"{i} " + "word " * 60}, {"role": "assistant", "content": "ok"})]
        more = dict(model="home-chat-s", input=[*turns, {"role": "user", "content": "hello"}], max_output_tokens=8, temperature=0)
        with rejects(openai.BadRequestError):
            api.responses.create(**more)
        short = api.responses.create(**more, truncation="auto")
        assert short.usage.input_tokens < 2048 and short.output

    @call("responses.create, stream", "the events come to the whole response")
    def _():
        more = dict(model="home-chat-s", input="hello", temperature=0, max_output_tokens=48)
        whole = api.responses.create(**more)
        text, last = "", None
        for event in api.responses.create(**more, stream=True):
            text += event.delta if event.type == "response.output_text.delta" else ""
            last = event
        equal((last.type, text), ("response.completed", whole.output_text))
        with api.responses.stream(**more) as stream:
            for _ in stream:
                pass
            equal(stream.get_final_response().output_text, whole.output_text)

    @call("responses.create", "a function is called by name, and its arguments follow the schema")
    def _():
        flat = [{"type": "function", "strict": True, **t["function"]} for t in TOOLS]
        for choice in ("required", {"type": "function", "name": "HassTurnOff"}):
            r = api.responses.create(model="plain", input="hello", tools=flat, tool_choice=choice, temperature=1, max_output_tokens=128)
            got = [o for o in r.output if o.type == "function_call"][0]
            assert got.name == "HassTurnOff" or choice == "required"
            equal(list(json.loads(got.arguments)), ["name"])

    @call("responses.parse", "a pydantic model")
    def _():
        r = api.responses.parse(model="plain", input="hello", text_format=Light, temperature=1, max_output_tokens=100)
        assert isinstance(r.output_parsed, Light)

    @call("responses.create", "hosted tools and background are refused by name")
    def _():
        with rejects(openai.BadRequestError, "tools[0].type"):
            api.responses.create(model="home-chat-s", input="hello", tools=[{"type": "web_search"}])
        with rejects(openai.BadRequestError, "background"):
            api.responses.create(model="home-chat-s", input="hello", background=True)
