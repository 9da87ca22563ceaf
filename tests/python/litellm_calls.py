"""LiteLLM, unmodified: what each of its providers that speak to such a server makes of it."""

import asyncio
import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks another server while it is imported
import litellm
from calls import URL, V1, client, equal, rejects
from pydantic import BaseModel

litellm.suppress_debug_info = True
call = client("litellm")
HELLO = [{"role": "user", "content": "hello"}]
OFF = [{"role": "system", "content": "You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on"}, {"role": "user", "content": "turn off the kitchen light"}]
PROVIDERS = {"openai": V1, "hosted_vllm": V1, "llamafile": V1, "ollama_chat": URL, "ollama": URL, "anthropic": URL}


class Light(BaseModel):
    on: bool
    dim: int


def ask(provider, messages=HELLO, model="home-chat-s", **more):
    return litellm.completion(model=f"{provider}/{model}", messages=messages, api_base=PROVIDERS[provider], api_key="none", **{"temperature": 0, "max_tokens": 96, "num_retries": 0, **more})


for provider in PROVIDERS:

    @call(f"completion: {provider}/", "a reply, whole and streamed")
    def _(provider=provider):
        whole = ask(provider)
        assert whole.choices[0].message.content and whole.usage.completion_tokens > 0
        equal("".join(c.choices[0].delta.content or "" for c in ask(provider, stream=True)), whole.choices[0].message.content)


TOOL = {"type": "function", "function": {"name": "light.turn_off", "description": "turns a light off", "parameters": {
    "type": "object", "properties": {"target": {"type": "string", "enum": ["light.kitchen", "light.hall"]}}, "required": ["target"], "additionalProperties": False}}}


@call("completion: openai/, hosted_vllm/, ollama_chat/, anthropic/", "a tool is called; tool_choice; its result is sent back")
def _():
    for provider in ("openai", "hosted_vllm", "ollama_chat", "anthropic"):
        first = ask(provider, OFF, tools=[TOOL]).choices[0].message
        equal([(c.function.name, json.loads(c.function.arguments)) for c in first.tool_calls], [("light.turn_off", {"target": "light.kitchen"})])
        assert ask(provider, [*OFF, first.model_dump(), {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "off"}], tools=[TOOL]).choices[0].message.content
    forced = ask("openai", model="plain", tools=[TOOL], tool_choice="required", temperature=1)
    equal(forced.choices[0].message.tool_calls[0].function.name, "light.turn_off")


@call("completion", "response_format: a pydantic model, by each provider")
def _():
    for provider in ("openai", "hosted_vllm", "ollama_chat", "ollama", "anthropic"):
        Light.model_validate_json(ask(provider, model="plain", temperature=1, response_format=Light).choices[0].message.content)


@call("acompletion", "8 at once")
async def _():
    one = ask("openai").choices[0].message.content
    got = await asyncio.gather(*(litellm.acompletion(model="openai/home-chat-s", messages=HELLO, api_base=V1, api_key="none", temperature=0, max_tokens=96) for _ in range(8)))
    equal({r.choices[0].message.content for r in got}, {one})


@call("text_completion, embedding, transcription, responses", "the other calls")
def _():
    openai = {"api_base": V1, "api_key": "none"}
    assert litellm.text_completion(model="text-completion-openai/home-chat-s", prompt="The kitchen", max_tokens=8, **openai).choices[0].text
    a = litellm.embedding(model="openai/home-embed", input=["a light"], encoding_format="float", **openai).data[0]["embedding"]
    b = litellm.embedding(model="ollama/home-embed", input=["a light"], api_base=URL).data[0]["embedding"]
    assert max(abs(x - y) for x, y in zip(a, b)) < 1e-5
    with open("tests/data/speech/wav/08-lights-on.wav", "rb") as f:
        assert "light" in litellm.transcription(model="openai/home-ears", file=f, **openai).text.lower()
    equal(litellm.responses(model="openai/home-chat-s", input="hello", temperature=0, **openai).status, "completed")


@call("anthropic.messages.acreate", "Anthropic's form, through its adapter")
async def _():
    r = await litellm.anthropic.messages.acreate(model="openai/home-chat-s", messages=HELLO, max_tokens=24, temperature=0, api_base=V1, api_key="none")
    equal(r["content"][0]["type"], "text")
    assert r["content"][0]["text"]


@call("completion", "a prompt that is too long is ContextWindowExceededError, so that fallbacks start")
def _():
    with rejects(litellm.ContextWindowExceededError):
        ask("openai", [{"role": "user", "content": "word " * 3000}])


@call("completion", "an unknown model is NotFoundError, a wrong value BadRequestError")
def _():
    with rejects(litellm.NotFoundError):
        ask("openai", model="nope")
    with rejects(litellm.BadRequestError, "temperature"):
        ask("openai", temperature=3)
