"""huggingface_hub's InferenceClient, unmodified."""

import json

from calls import V1, client, equal, rejects
from huggingface_hub import AsyncInferenceClient, InferenceClient
from huggingface_hub.errors import HfHubHTTPError

call = client("huggingface_hub")
api = InferenceClient(base_url=V1, api_key="none")
HELLO = [{"role": "user", "content": "hello"}]
OFF = [{"role": "system", "content": "You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on"}, {"role": "user", "content": "turn off the kitchen light"}]
COLD = {"model": "home-chat-s", "temperature": 0, "max_tokens": 96}


@call("chat_completion", "a reply, whole and streamed, with usage; logprobs, stop and seed")
def _():
    whole = api.chat_completion(HELLO, **COLD)
    text = whole.choices[0].message.content
    assert text and whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    parts = list(api.chat_completion(HELLO, stream=True, stream_options={"include_usage": True}, **COLD))
    equal("".join(c.choices[0].delta.content or "" for c in parts if c.choices), text)
    equal(parts[-1].usage.completion_tokens, whole.usage.completion_tokens)
    equal(api.chat.completions.create(messages=HELLO, **COLD).choices[0].message.content, text)
    assert len(api.chat_completion(HELLO, logprobs=True, top_logprobs=3, **COLD).choices[0].logprobs.content[0].top_logprobs) == 3
    equal(api.chat_completion(HELLO, stop=[text[3:5]], seed=1, **COLD).choices[0].message.content, text[: text.index(text[3:5])])


@call("chat_completion", "a tool is called; tool_choice; its result is sent back")
def _():
    tool = {"type": "function", "function": {"name": "light.turn_off", "description": "turns a light off", "parameters": {
        "type": "object", "properties": {"target": {"type": "string", "enum": ["light.kitchen", "light.hall"]}}, "required": ["target"]}}}
    for choice in ("auto", "required", {"function": {"name": "light.turn_off"}}):
        got = api.chat_completion(OFF, tools=[tool], tool_choice=choice, **COLD).choices[0].message
        call = got.tool_calls[0]
        arguments = call.function.arguments
        equal((call.function.name, json.loads(arguments) if isinstance(arguments, str) else arguments), ("light.turn_off", {"target": "light.kitchen"}))
    result = {"role": "tool", "tool_call_id": call.id, "content": "off"}
    assert api.chat_completion([*OFF, {"role": "assistant", "tool_calls": got.tool_calls}, result], tools=[tool], **COLD).choices[0].message.content


@call("chat_completion", "response_format: json_schema holds a model that was never trained for it")
def _():
    schema = {"type": "object", "properties": {"on": {"type": "boolean"}, "dim": {"type": "integer"}}, "required": ["on", "dim"], "additionalProperties": False}
    for kind in ({"type": "json_schema", "json_schema": {"name": "light", "schema": schema, "strict": True}}, {"type": "json_object", "value": schema}):
        r = api.chat_completion(HELLO, model="plain", temperature=1, max_tokens=96, response_format=kind)
        got = json.loads(r.choices[0].message.content)
        equal(sorted(got), ["dim", "on"])


@call("AsyncInferenceClient: chat_completion", "a reply")
async def _():
    got = await AsyncInferenceClient(base_url=V1, api_key="none").chat_completion(HELLO, **COLD)
    equal(got.choices[0].message.content, api.chat_completion(HELLO, **COLD).choices[0].message.content)


@call("chat_completion", "an unknown model is HfHubHTTPError")
def _():
    with rejects(HfHubHTTPError, "404"):
        api.chat_completion(HELLO, model="nope")
