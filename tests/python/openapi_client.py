"""Imports every module of the client that openapi-python-client made (shoal_api), and calls some endpoints with it."""

import importlib
import pkgutil
import sys

import shoal_api
from shoal_api import Client
from shoal_api.api.chat import chat_completions, responses
from shoal_api.api.embeddings import embeddings
from shoal_api.api.kserve import kserve_infer
from shoal_api.api.models import models
from shoal_api.api.ollama import ollama_chat
from shoal_api.api.pipelines import process
from shoal_api.api.retrieval import file_delete, file_upload
from shoal_api.models import (
    ChatCompletion,
    ChatRequest,
    Embeddings,
    EmbeddingRequest,
    Error,
    FileForm,
    KserveInferRequest,
    ModelResponse,
    OllamaChatRequest,
    ProcessRequest,
    ResponseRequest,
)
from shoal_api.types import File

modules = [m.name for m in pkgutil.walk_packages(shoal_api.__path__, "shoal_api.")]
for name in modules:
    importlib.import_module(name)

with Client(base_url=sys.argv[1], timeout=60) as api:
    served = models.sync(client=api)
    assert "home-chat-s" in [m.id for m in served.data], served

    chat = ChatRequest.from_dict({"model": "home-chat-s", "max_tokens": 4, "logprobs": True, "messages": [{"role": "user", "content": "hello"}]})
    answer = chat_completions.sync(client=api, body=chat)
    assert isinstance(answer, ChatCompletion) and answer.usage.completion_tokens <= 4, answer
    assert answer.choices[0].logprobs.content[0].logprob <= 0

    missing = chat_completions.sync_detailed(client=api, body=ChatRequest.from_dict({**chat.to_dict(), "model": "nobody"}))
    assert missing.status_code == 404 and isinstance(missing.parsed, Error) and "nobody" in missing.parsed.error.message, missing

    vectors = embeddings.sync(client=api, body=EmbeddingRequest(model="home-embed", input_=["a light", "a door"]))
    assert isinstance(vectors, Embeddings) and len(vectors.data) == 2 and len(vectors.data[0].embedding) == 256

    kept = responses.sync(client=api, body=ResponseRequest.from_dict({"model": "home-chat-s", "input": "hello", "max_output_tokens": 4, "store": False}))
    assert isinstance(kept, ModelResponse) and kept.output, kept

    line = ollama_chat.sync_detailed(client=api, body=OllamaChatRequest.from_dict({"model": "home-chat-s", "stream": False, "options": {"num_predict": 4}, "messages": [{"role": "user", "content": "hello"}]}))
    assert line.status_code == 200 and line.parsed.done, line

    done = process.sync(client=api, body=ProcessRequest.from_dict({"input": "turn off the kitchen light"}))
    assert done.text, done

    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a light"]}
    inferred = kserve_infer.sync(model="home-embed", client=api, body=KserveInferRequest.from_dict({"inputs": [tensor]}))
    assert inferred.outputs[0].shape == [1, 256], inferred

    sent = file_upload.sync(client=api, body=FileForm(file=File(payload=b"The kettle is red.", file_name="a.txt"), purpose="assistants"))
    assert getattr(sent, "bytes_", None) == 18, sent
    assert file_delete.sync(client=api, file=sent.id).deleted

print(f"{len(modules)} modules, 9 calls")
