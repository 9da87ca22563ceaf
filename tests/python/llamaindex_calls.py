"""LlamaIndex's packages for servers that are like OpenAI's, unmodified."""

import asyncio

import openai
from calls import V1, client, equal, rejects
from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

HOME = ChatMessage(role="system", content="You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on")
OFF = ChatMessage(role="user", content="turn off the kitchen light")
HELLO = ChatMessage(role="user", content="hello")


class Light(BaseModel):
    """A light."""

    on: bool
    dim: int = Field(ge=0, le=100)


def llm(model="home-chat-s", **more):
    return OpenAILike(**{"model": model, "api_base": V1, "api_key": "none", "is_chat_model": True, "is_function_calling_model": True,
                         "context_window": 2048, "temperature": 0, "max_tokens": 96, "max_retries": 0, **more})


def turn_off(target: str) -> str:
    """Turns a light off."""
    return f"{target} is off"


embedder = OpenAILikeEmbedding(model_name="home-embed", api_base=V1, api_key="none", embed_batch_size=8)
call = client("llama-index-llms-openai-like")


@call("OpenAILike: chat, stream_chat, achat", "the pieces give the whole")
def _():
    whole = llm().chat([HELLO]).message.content
    assert whole
    equal("".join(r.delta or "" for r in llm().stream_chat([HELLO])), whole)
    equal(asyncio.run(llm().achat([HELLO])).message.content, whole)


@call("OpenAILike: complete, stream_complete", "as one message, and as a prompt of completions")
def _():
    equal(llm().complete("hello").text, llm().chat([HELLO]).message.content)
    raw = llm(is_chat_model=False, max_tokens=8)
    equal("".join(r.delta or "" for r in raw.stream_complete("The kitchen")), raw.complete("The kitchen").text)


@call("OpenAILike: chat_with_tools, predict_and_call", "a call, and what the function gives")
def _():
    tool = FunctionTool.from_defaults(turn_off, name="light_turn_off")
    r = llm().chat_with_tools([tool], user_msg=OFF, chat_history=[HOME])
    calls = llm().get_tool_calls_from_response(r)
    equal([(c.tool_name, c.tool_kwargs) for c in calls], [("light_turn_off", {"target": "light.kitchen"})])
    equal(str(llm().predict_and_call([tool], user_msg=OFF, chat_history=[HOME])), "light.kitchen is off")


@call("OpenAILike: as_structured_llm", "a pydantic model")
def _():
    got = llm("plain", temperature=1, should_use_structured_outputs=True).as_structured_llm(Light).complete("hello").raw
    assert isinstance(got, Light)
    assert isinstance(llm("plain", temperature=1).structured_predict(Light, PromptTemplate("hello")), Light)


@call("OpenAILike: chat", "an error of the server is openai's")
def _():
    with rejects(openai.NotFoundError):
        llm("nope").chat([HELLO])


call = client("llama-index-embeddings-openai-like")


@call("OpenAILikeEmbedding", "vectors of texts and of a query, in batches")
def _():
    texts = [f"light {i}" for i in range(20)]
    got = embedder.get_text_embedding_batch(texts)
    equal(len(got), 20)
    assert max(abs(a - b) for a, b in zip(got[3], embedder.get_query_embedding("light 3"))) < 1e-5


@call("VectorStoreIndex", "documents are found by vectors, and asked about")
def _():
    documents = [Document(text=t) for t in ("The boiler is in the cellar.", "Jazz plays in the lounge.", "The front door has a lock.")]
    index = VectorStoreIndex.from_documents(documents, embed_model=embedder, transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=0)])
    equal(index.as_retriever(similarity_top_k=1).retrieve("where is the boiler?")[0].text, documents[0].text)
    assert str(index.as_query_engine(llm=llm(), similarity_top_k=1).query("where is the boiler?"))
