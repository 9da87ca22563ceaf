"""Anthropic's own package, unmodified."""

import asyncio
import json
import os
import time

import anthropic
from calls import URL, client, equal, rejects
from pydantic import BaseModel

call = client("anthropic")
api = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
aio = anthropic.AsyncAnthropic(base_url=URL, api_key="none", max_retries=0)
HELLO = [{"role": "user", "content": "hello"}]
HOME = "You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on"
OFF = [{"role": "user", "content": "turn off the kitchen light"}]
TARGET = {"type": "object", "properties": {"target": {"type": "string", "enum": ["light.kitchen", "light.hall"]}}, "required": ["target"], "additionalProperties": False}
TOOL = {"name": "light.turn_off", "description": "turns a light off", "input_schema": TARGET}
GREEDY = {"temperature": 0}  # this version has no argument for it


def ask(messages=HELLO, model="home-chat-s", **more):
    return api.messages.create(**{"model": model, "messages": messages, "max_tokens": 96, "extra_body": GREEDY, **more})


def text(message):
    return "".join(b.text for b in message.content if b.type == "text")


@call("messages.create", "a reply, with its usage")
def _():
    r = ask()
    equal((r.type, r.role, r.model, r.stop_reason, r.stop_sequence), ("message", "assistant", "home-chat-s", "end_turn", None))
    assert r.id.startswith("msg_") and text(r) and r._request_id
    equal([b.type for b in r.content], ["text"])
    ours = api.post("/v1/chat/completions", body={"model": "home-chat-s", "messages": HELLO, "max_tokens": 96, **GREEDY}, cast_to=object)
    equal(text(r), ours["choices"][0]["message"]["content"])
    u = r.usage
    equal(u.input_tokens + u.cache_read_input_tokens + u.cache_creation_input_tokens, ours["usage"]["prompt_tokens"])
    equal(u.output_tokens, ours["usage"]["completion_tokens"])


@call("messages.create", "stop_sequences, max_tokens, system, blocks")
def _():
    whole = text(ask(system="Be brief.", extra_body={**GREEDY, "seed": 1}))
    equal(whole, text(ask([{"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]}], system=[{"type": "text", "text": "Be brief."}])))
    cut = ask(max_tokens=1)
    equal((cut.stop_reason, cut.usage.output_tokens), ("max_tokens", 1))
    word = text(ask())[2:5]
    stopped = ask(stop_sequences=["~~", word])
    equal((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", word))
    assert word not in text(stopped)
    with api.messages.stream(model="home-chat-s", messages=HELLO, max_tokens=96, stop_sequences=["~~", word], extra_body=GREEDY) as s:
        equal(s.get_final_message().stop_sequence, word)


@call("messages.create", "stream=True: events, each with its name")
def _():
    kinds = [e.type for e in ask(stream=True)]
    equal(kinds[:2] + kinds[-3:], ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"])
    assert "content_block_delta" in kinds


@call("messages.stream", "text_stream, get_final_message")
def _():
    with api.messages.stream(model="home-chat-s", messages=HELLO, max_tokens=96, extra_body=GREEDY) as s:
        said = "".join(s.text_stream)
        final = s.get_final_message()
    whole = ask()
    equal(said, text(whole))
    equal((text(final), final.stop_reason), (said, "end_turn"))
    equal(final.usage.output_tokens, whole.usage.output_tokens)
    read = lambda u: u.input_tokens + u.cache_read_input_tokens
    equal(read(final.usage), read(whole.usage))


@call("messages.create, messages.stream", "a tool is called, and its result goes back")
def _():
    first = ask(OFF, system=HOME, tools=[TOOL])
    equal(first.stop_reason, "tool_use")
    use = first.content[-1]
    equal((use.type, use.name, use.input), ("tool_use", "light.turn_off", {"target": "light.kitchen"}))
    assert use.id.startswith("toolu_")
    with api.messages.stream(model="home-chat-s", messages=OFF, max_tokens=96, system=HOME, tools=[TOOL], extra_body=GREEDY) as s:
        final = s.get_final_message()
    equal([(b.type, getattr(b, "input", None)) for b in final.content], [(b.type, getattr(b, "input", None)) for b in first.content])
    for result in ("done", [{"type": "text", "text": "done"}]):
        more = [*OFF, first.to_param(), {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": result}]}]
        after = ask(more, system=HOME, tools=[TOOL])
        assert text(after) and after.stop_reason in ("end_turn", "max_tokens")


@call("messages.create", "tool_choice: any, tool, none; nothing is called that was not offered")
def _():
    plain = {"model": "plain", "extra_body": {"temperature": 1, "seed": 3}, "tools": [TOOL, {**TOOL, "name": "light.turn_on"}]}
    for choice in ({"type": "any"}, {"type": "tool", "name": "light.turn_on"}, {"type": "any", "disable_parallel_tool_use": True}):
        r = ask(OFF, tool_choice=choice, **plain)
        uses = [b for b in r.content if b.type == "tool_use"]
        equal((len(uses), r.stop_reason), (1, "tool_use"))
        assert uses[0].name == choice.get("name", uses[0].name) and uses[0].input["target"] in TARGET["properties"]["target"]["enum"]
    for more in ({"tool_choice": {"type": "none"}, "tools": [TOOL]}, {}):
        r = ask(OFF, system=HOME, **more)
        equal(([b.type for b in r.content], r.stop_reason), (["text"], "end_turn"))


class Light(BaseModel):
    on: bool
    dim: int


@call("messages.create, messages.parse", "output_config: a schema holds the answer")
def _():
    schema = {**Light.model_json_schema(), "additionalProperties": False}
    r = ask(model="plain", extra_body={"temperature": 1, "seed": 3}, output_config={"format": {"type": "json_schema", "schema": schema}})
    Light.model_validate_json(text(r))
    parsed = api.messages.parse(model="plain", messages=HELLO, max_tokens=96, output_format=Light, extra_body={"temperature": 1, "seed": 3})
    assert isinstance(parsed.parsed_output, Light)


@call("messages.count_tokens", "the tokens that a message reads")
def _():
    for more in ({}, {"system": HOME}, {"system": HOME, "tools": [TOOL]}):
        counted = api.messages.count_tokens(model="home-chat-s", messages=OFF, **more)
        u = ask(OFF, max_tokens=1, **more).usage
        equal(counted.input_tokens, u.input_tokens + u.cache_read_input_tokens)
    ours = api.post("/v1/chat/completions/input_tokens", body={"model": "home-chat-s", "messages": OFF}, cast_to=object)
    equal(ours, {"object": "chat.completion.input_tokens", "input_tokens": api.messages.count_tokens(model="home-chat-s", messages=OFF).input_tokens})
    with rejects(anthropic.BadRequestError, "is a pipeline"):
        api.messages.count_tokens(model="home", messages=OFF)


@call("models.list, models.retrieve", "what is served, in pages")
def _():
    names = [m.id for m in api.models.list(limit=3)]
    assert len(names) == len(set(names)) and {"home-chat-s", "home-chat-m", "home-embed", "home"} <= set(names), names
    page = api.models.list(limit=2)
    equal((len(page.data), page.has_more, page.first_id, page.last_id), (2, True, names[0], names[1]))
    before = api.models.list(limit=2, before_id=names[4])
    equal([m.id for m in before.data], names[2:4])
    m = api.models.retrieve("home-chat-s")
    equal((m.type, m.id, m.display_name, m.max_input_tokens), ("model", "home-chat-s", "home-chat-s", 2048))
    assert m.created_at.year >= 2024
    equal(api.models.retrieve("home").id, "home")


@call("beta.messages.create, beta.messages.count_tokens, beta.models.list", "the same by the beta names")
def _():
    r = api.beta.messages.create(model="home-chat-s", messages=HELLO, max_tokens=96, extra_body=GREEDY, betas=["some-beta-2026-01-01"])
    equal(text(r), text(ask()))
    assert api.beta.messages.count_tokens(model="home-chat-s", messages=HELLO).input_tokens > 0
    assert "home" in [m.id for m in api.beta.models.list(limit=5)]


@call("messages.create", "thinking: a model without thoughts answers")
def _():
    r = ask(max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024})
    equal(([b.type for b in r.content], text(r)), (["text"], text(ask())))


@call("errors", "the exceptions of this package, with the request's id")
def _():
    cases = [
        (anthropic.NotFoundError, "not_found_error", "does not exist here", lambda: ask(model="claude-nobody")),
        (anthropic.NotFoundError, "not_found_error", "does not exist here", lambda: api.models.retrieve("claude-nobody")),
        (anthropic.BadRequestError, "invalid_request_error", "prefill", lambda: ask([*HELLO, {"role": "assistant", "content": "I"}])),
        (anthropic.BadRequestError, "invalid_request_error", "maximum context length", lambda: ask([{"role": "user", "content": "a " * 3000}])),
        (anthropic.BadRequestError, "invalid_request_error", "web_search_20250305", lambda: ask(tools=[{"type": "web_search_20250305", "name": "web_search"}])),
        (anthropic.BadRequestError, "invalid_request_error", "\"image\"", lambda: ask([{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}]}])),
        (anthropic.RequestTooLargeError, "request_too_large", "too large", lambda: ask([{"role": "user", "content": "a" * (2 << 20)}])),
        (anthropic.InternalServerError, "timeout_error", "deadline", lambda: ask(extra_headers={"x-shoal-deadline-ms": "0"})),
    ]
    for kind, name, says, run in cases:
        with rejects(kind, says) as caught:
            run()
        e = caught.error
        equal((e.body["type"], e.body["error"]["type"], e.body["request_id"]), ("error", name, e.request_id))
    with rejects(anthropic.BadRequestError, "maximum context length"):
        ask([{"role": "user", "content": "a " * 3000}], stream=True)


@call("messages.create: home", "a pipeline acts by the tools that are offered, and by no others")
def _():
    tools = [{"name": "HassTurnOff", "description": "Turns off a device", "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}]
    devices = "Devices:\nlight.kitchen 'Kitchen Light' = on"
    r = ask(OFF, model="home", system=devices, tools=tools)
    uses = [b for b in r.content if b.type == "tool_use"]
    equal((r.stop_reason, [u.name for u in uses]), ("tool_use", ["HassTurnOff"]))
    failed = [*OFF, r.to_param(), {"role": "user", "content": [{"type": "tool_result", "tool_use_id": u.id, "content": "no such device", "is_error": True} for u in uses]}]
    equal(ask(failed, model="home", system=devices, tools=tools).stop_reason, "end_turn")
    none = ask(OFF, model="home", system=devices)
    equal([b.type for b in none.content], ["text"])


@call("AsyncAnthropic", "8 streams at once")
async def _():
    async def one():
        async with aio.messages.stream(model="home-chat-s", messages=HELLO, max_tokens=96, extra_body=GREEDY) as s:
            return text(await s.get_final_message())

    equal(set(await asyncio.gather(*(one() for _ in range(8)))), {text(ask())})


@call("messages.batches.create, retrieve, list, results, delete", "messages are answered in the background")
def _():
    params = {"model": "home-chat-s", "messages": HELLO, "max_tokens": 8}
    made = api.messages.batches.create(requests=[{"custom_id": "a", "params": params}, {"custom_id": "b", "params": {**params, "model": "no-such"}}])
    equal((made.type, made.results_url), ("message_batch", None))
    while (b := api.messages.batches.retrieve(made.id)).processing_status != "ended":
        time.sleep(0.05)
    equal((b.request_counts.succeeded, b.request_counts.errored, b.request_counts.processing), (1, 1, 0))
    assert b.ended_at >= b.created_at
    results = {r.custom_id: r.result for r in api.messages.batches.results(made.id)}
    equal((results["a"].type, results["a"].message.role, results["b"].type, results["b"].error.error.type), ("succeeded", "assistant", "errored", "not_found_error"))
    assert made.id in [x.id for x in api.messages.batches.list(limit=1)]
    with rejects(anthropic.BadRequestError, "has ended"):
        api.messages.batches.cancel(made.id)
    with rejects(anthropic.BadRequestError, "used before"):
        api.messages.batches.create(requests=[{"custom_id": "a", "params": params}] * 2)
    equal(api.messages.batches.delete(made.id).id, made.id)
    with rejects(anthropic.NotFoundError):
        api.messages.batches.retrieve(made.id)
