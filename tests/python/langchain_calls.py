"""LangChain's packages for OpenAI and Ollama, unmodified."""

import asyncio
from typing import Literal

import openai
from calls import URL, V1, client, equal, rejects
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

HOME = SystemMessage("You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on")
OFF = [HOME, HumanMessage("turn off the kitchen light")]


class Light(BaseModel):
    """A light."""

    on: bool
    dim: int = Field(ge=0, le=100)


@tool("light.turn_off")
def turn_off(target: Literal["light.kitchen", "light.hall"]) -> str:
    """turns a light off"""
    return target


def chat(model="home-chat-s", **more):
    return ChatOpenAI(model=model, base_url=V1, api_key="none", max_retries=0, **{"temperature": 0, "max_tokens": 96, **more})


call = client("langchain-openai")
for api, more in (("ChatOpenAI", {}), ("ChatOpenAI(use_responses_api)", {"use_responses_api": True})):

    @call(f"{api}: invoke, stream", "the pieces give the whole, and have the usage")
    def _(more=more):
        whole = chat(**more).invoke("hello")
        assert whole.text and whole.usage_metadata["total_tokens"] > 0
        parts = list(chat(stream_usage=True, **more).stream("hello"))
        equal("".join(p.text for p in parts), whole.text)
        total = sum((p.usage_metadata or {}).get("output_tokens", 0) for p in parts)
        equal(total, whole.usage_metadata["output_tokens"])

    @call(f"{api}: bind_tools", "auto: a call, its result, and the answer")
    def _(more=more):
        held = chat(**more).bind_tools([turn_off])
        first = held.invoke(OFF)
        equal([(c["name"], c["args"]) for c in first.tool_calls], [("light.turn_off", {"target": "light.kitchen"})])
        result = ToolMessage("off", tool_call_id=first.tool_calls[0]["id"])
        assert held.invoke([*OFF, first, result]).text

    @call(f"{api}: bind_tools", "a name, and strict; a model that was never trained to call")
    def _(more=more):
        for choice in ("light.turn_off", "any"):
            if choice == "any" and more:
                continue  # the client sends no tool_choice then
            r = chat("plain", temperature=1, **more).bind_tools([turn_off], tool_choice=choice, strict=True).invoke("hello")
            equal([c["name"] for c in r.tool_calls], ["light.turn_off"])
            equal(list(r.tool_calls[0]["args"]), ["target"])

    @call(f"{api}: with_structured_output", "json_schema and function_calling: a pydantic model")
    def _(more=more):
        for method in ("json_schema", "function_calling"):
            assert isinstance(chat("plain", temperature=1, **more).with_structured_output(Light, method=method).invoke("hello"), Light)


@call("ChatOpenAI: batch, pipe, ainvoke", "a chain of a prompt and the model, several at once")
def _():
    chain = ChatPromptTemplate.from_messages([("system", "Be brief."), ("user", "{q}")]) | chat()
    one = chain.invoke({"q": "hello"}).text
    equal([m.text for m in chain.batch([{"q": "hello"}] * 4)], [one] * 4)
    equal(asyncio.run(chain.ainvoke({"q": "hello"})).text, one)


@call("ChatOpenAI: invoke", "logprobs, stop, n and seed; errors are openai's")
def _():
    r = chat(logprobs=True, top_logprobs=2).invoke("hello")
    equal(len(r.response_metadata["logprobs"]["content"]), r.usage_metadata["output_tokens"])
    text = chat().invoke("hello").text
    equal(chat(stop=[text[3:5]]).invoke("hello").text, text[: text.index(text[3:5])])
    equal(len(chat("plain", n=2, temperature=1, seed=3).generate([[HumanMessage("hello")]]).generations[0]), 2)
    with rejects(openai.NotFoundError):
        chat("nope").invoke("hello")


@call("OpenAI: invoke, stream", "completions")
def _():
    llm = OpenAI(model="home-chat-s", base_url=V1, api_key="none", temperature=0, max_tokens=8, max_retries=0)
    equal("".join(llm.stream("The kitchen")), llm.invoke("The kitchen"))


@call("OpenAIEmbeddings", "vectors, with check_embedding_ctx_length=False")
def _():
    e = OpenAIEmbeddings(model="home-embed", base_url=V1, api_key="none", check_embedding_ctx_length=False)
    two = e.embed_documents(["a light", "a door"])
    equal(len(two), 2)
    assert max(abs(a - b) for a, b in zip(two[0], e.embed_query("a light"))) < 1e-6


call = client("langchain-ollama")


def local(model="home-chat-s", **more):
    return ChatOllama(model=model, base_url=URL, **{"temperature": 0, "num_predict": 96, **more})


@call("ChatOllama: invoke, stream", "the pieces give the whole; validate_model_on_init")
def _():
    whole = local(validate_model_on_init=True).invoke("hello")
    assert whole.text and whole.usage_metadata["output_tokens"] > 0
    equal("".join(p.text for p in local().stream("hello")), whole.text)
    equal(OllamaLLM(model="home-chat-s", base_url=URL, temperature=0, num_predict=96).invoke("hello"), whole.text)


@call("ChatOllama: bind_tools", "a call, its result, and the answer")
def _():
    first = local().bind_tools([turn_off]).invoke(OFF)
    equal([(c["name"], c["args"]) for c in first.tool_calls], [("light.turn_off", {"target": "light.kitchen"})])
    assert isinstance(first, AIMessage)
    assert local().bind_tools([turn_off]).invoke([*OFF, first, ToolMessage("off", tool_call_id=first.tool_calls[0]["id"])]).text


@call("ChatOllama: with_structured_output", "json_schema: a pydantic model")
def _():
    assert isinstance(local("plain", temperature=1).with_structured_output(Light, method="json_schema").invoke("hello"), Light)


@call("OllamaEmbeddings", "vectors")
def _():
    e = OllamaEmbeddings(model="home-embed", base_url=URL)
    equal(e.embed_documents(["a light", "a door"])[0], e.embed_query("a light"))


@call("OllamaEmbeddings", "a text that is too long is cut, as Ollama does it")
def _():
    e = OllamaEmbeddings(model="home-embed", base_url=URL)
    equal(e.embed_query("word " * 500), e.embed_query("word " * 600))
