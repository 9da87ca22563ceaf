"""Packages that make agents and typed replies of OpenAI's client, unmodified: instructor, pydantic-ai, openai-agents."""

import json

import agents
import instructor
import openai
from agents import Agent as OpenAIAgent
from agents import ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from calls import V1, client, equal, rejects
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelHTTPError, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel as PydanticResponses
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider

HOME = "You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on"
HELLO = [{"role": "user", "content": "hello"}]
OFF = "turn off the kitchen light"


class Light(BaseModel):
    """A light."""

    on: bool
    dim: int = Field(ge=0, le=100)


call = client("instructor")
for mode in ("TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "FUNCTIONS", "RESPONSES_TOOLS"):

    @call(f"Mode.{mode}: create", "a pydantic model, of a model that was never trained for it")
    def _(mode=mode):
        api = instructor.from_openai(OpenAI(base_url=V1, api_key="none", max_retries=0), mode=instructor.Mode[mode])
        budget = {"max_output_tokens": 100} if "RESPONSES" in mode else {"max_tokens": 100}
        got = api.chat.completions.create(model="plain", messages=HELLO, response_model=Light, temperature=1, max_retries=0, **budget)
        assert isinstance(got, Light)


@call("create_partial, create_with_completion", "a model that grows; the completion beside it")
def _():
    api = instructor.from_openai(OpenAI(base_url=V1, api_key="none", max_retries=0), mode=instructor.Mode.JSON_SCHEMA)
    more = dict(model="plain", messages=HELLO, response_model=Light, temperature=1, seed=5, max_tokens=100, max_retries=0)
    got, completion = api.chat.completions.create_with_completion(**more)
    equal(json.loads(completion.choices[0].message.content), got.model_dump())
    last = list(api.chat.completions.create_partial(**more))[-1]
    equal((last.on, last.dim), (got.on, got.dim))


call = client("pydantic-ai-slim")
COLD = {"temperature": 0, "max_tokens": 96}
provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=V1, api_key="none", max_retries=0))


def turning(agent):
    """agent with a tool that the home models know; what it was called with."""
    seen = []

    @agent.tool_plain(name="light.turn_off")
    def turn_off(target: str) -> str:
        seen.append(target)
        return "off"

    return seen


for name, make in (
    ("OpenAIChatModel", lambda m: OpenAIChatModel(m, provider=OpenAIProvider(base_url=V1, api_key="none"))),
    ("OpenAIResponsesModel", lambda m: PydanticResponses(m, provider=OpenAIProvider(base_url=V1, api_key="none"))),
    ("OllamaProvider", lambda m: OpenAIChatModel(m, provider=OllamaProvider(base_url=V1))),
):

    @call(f"{name}: run, run_stream", "the pieces give the whole, with usage")
    async def _(make=make):
        agent = Agent(make("home-chat-s"), model_settings=COLD)
        whole = await agent.run("hello")
        assert whole.output
        async with agent.run_stream("hello") as stream:
            equal("".join([t async for t in stream.stream_text(delta=True)]), whole.output)

    @call(f"{name}: tool_plain", "a tool is called, and its result is answered with")
    async def _(make=make):
        agent = Agent(make("home-chat-s"), instructions=HOME, model_settings=COLD)
        seen = turning(agent)
        assert (await agent.run(OFF)).output
        equal(seen, ["light.kitchen"])

    @call(f"{name}: output_type", "a pydantic model as a tool and as NativeOutput")
    async def _(make=make):
        for kind in (Light, NativeOutput(Light)):
            got = await Agent(make("plain"), output_type=kind, model_settings={"temperature": 1, "max_tokens": 100}).run("hello")
            assert isinstance(got.output, Light)


@call("ModelHTTPError", "an unknown model")
async def _():
    with rejects(ModelHTTPError) as e:
        await Agent(OpenAIChatModel("nope", provider=OpenAIProvider(base_url=V1, api_key="none"))).run("hello")
    equal(e.error.status_code, 404)


call = client("openai-agents")
agents.set_tracing_disabled(True)
SETTINGS = ModelSettings(temperature=0, max_tokens=96)
for name, make in (("OpenAIChatCompletionsModel", OpenAIChatCompletionsModel), ("OpenAIResponsesModel", OpenAIResponsesModel)):

    def model(which, make=make):
        return make(model=which, openai_client=AsyncOpenAI(base_url=V1, api_key="none", max_retries=0))

    @call(f"{name}: Runner.run, run_streamed", "the pieces give the whole")
    async def _(model=model):
        agent = OpenAIAgent(name="helper", model=model("home-chat-s"), model_settings=SETTINGS)
        whole = (await Runner.run(agent, "hello")).final_output
        assert whole
        text, streamed = "", Runner.run_streamed(agent, "hello")
        async for event in streamed.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                text += event.data.delta
        equal((text, streamed.final_output), (whole, whole))

    @call(f"{name}: function_tool", "a tool is called, and its result is answered with")
    async def _(model=model):
        seen = []

        @function_tool(name_override="light.turn_off")
        def turn_off(target: str) -> str:
            """turns a light off"""
            seen.append(target)
            return "off"

        agent = OpenAIAgent(name="helper", instructions=HOME, tools=[turn_off], model=model("home-chat-s"), model_settings=SETTINGS)
        assert (await Runner.run(agent, OFF, max_turns=3)).final_output
        equal(seen, ["light.kitchen"])

    @call(f"{name}: output_type", "a pydantic model")
    async def _(model=model):
        agent = OpenAIAgent(name="helper", output_type=Light, model=model("plain"), model_settings=ModelSettings(temperature=1, max_tokens=100))
        assert isinstance((await Runner.run(agent, "hello")).final_output, Light)

    @call(f"{name}: handoffs", "a model that is made to hands over, and the other answers")
    async def _(model=model):
        other = OpenAIAgent(name="other", model=model("home-chat-s"), model_settings=SETTINGS)
        first = OpenAIAgent(name="first", handoffs=[other], model=model("plain"), model_settings=ModelSettings(tool_choice="required", max_tokens=64))
        got = await Runner.run(first, "hello", max_turns=4)
        equal(got.last_agent.name, "other")
        assert got.final_output

    @call(f"{name}", "an unknown model is openai's NotFoundError")
    async def _(model=model):
        with rejects(openai.NotFoundError):
            await Runner.run(OpenAIAgent(name="helper", model=model("nope")), "hello")
