"""Triton's own clients, unmodified: HTTP and gRPC, sync and asyncio."""

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.grpc.aio as triton_grpc_aio
import tritonclient.http as triton_http
import tritonclient.http.aio as triton_http_aio
from calls import URL, client, equal, rejects
from tritonclient.utils import InferenceServerException

call = client("tritonclient")
ADDRESS = URL.split("//")[1]
KINDS = (("http", triton_http), ("grpc", triton_grpc))


def texts(kind, name, *values, **more):
    t = kind.InferInput(name, [len(values)], "BYTES")
    t.set_data_from_numpy(np.array([v.encode() for v in values], dtype=np.object_), **more)
    return t


def one(kind):
    return kind.InferenceServerClient(ADDRESS)


for name, kind in KINDS:

    @call(f"{name}: is_server_live, is_model_ready, get_model_metadata, get_model_repository_index", "what is there")
    def _(name=name, kind=kind):
        api = one(kind)
        assert api.is_server_live() and api.is_server_ready() and api.is_model_ready("home-embed")
        about = api.get_model_metadata("home-embed") if name == "http" else api.get_model_metadata("home-embed", as_json=True)
        equal((about["name"], about["inputs"][0]["name"], about["outputs"][0]["name"]), ("home-embed", "text", "embedding"))
        index = api.get_model_repository_index() if name == "http" else api.get_model_repository_index(as_json=True)["models"]
        assert any(m["name"] == "home-intent" and m["state"] == "READY" for m in index)

    @call(f"{name}: infer", "vectors, and labels with scores; several texts; a request id")
    def _(kind=kind):
        api = one(kind)
        both = api.infer("home-embed", [texts(kind, "text", "a light", "a door")], request_id="7")
        equal(both.get_response().id if kind is triton_grpc else both.get_response()["id"], "7")
        equal(both.as_numpy("embedding").shape, (2, 256))
        alone = api.infer("home-embed", [texts(kind, "text", "a door")]).as_numpy("embedding")
        assert np.array_equal(alone[0], both.as_numpy("embedding")[1])
        wanted = [kind.InferRequestedOutput("label"), kind.InferRequestedOutput("scores")]
        got = api.infer("home-intent", [texts(kind, "text", "set an alarm for six")], outputs=wanted)
        scores = got.as_numpy("scores")[0]
        assert got.as_numpy("label")[0] and abs(scores.sum() - 1) < 1e-3
        equal(got.as_numpy("score"), None)

    @call(f"{name}: infer", "a generation with parameters")
    def _(kind=kind):
        api = one(kind)
        got = api.infer("home-chat-s", [texts(kind, "text_input", "The kitchen")], parameters={"max_tokens": 8, "temperature": 0})
        assert got.as_numpy("text_output")[0] and got.as_numpy("finish_reason")[0] in (b"stop", b"length")

    @call(f"{name}: infer", "what is wrong is InferenceServerException")
    def _(kind=kind):
        api = one(kind)
        with rejects(InferenceServerException, "nope"):
            api.infer("nope", [texts(kind, "text", "a")])
        with rejects(InferenceServerException, "text"):
            api.infer("home-embed", [texts(kind, "txt", "a")])


@call("http: infer", "JSON instead of bytes, gzip both ways, async_infer; the same numbers over gRPC")
def _():
    api = one(triton_http)
    want = one(triton_grpc).infer("home-embed", [texts(triton_grpc, "text", "a light")]).as_numpy("embedding")
    plain = api.infer("home-embed", [texts(triton_http, "text", "a light", binary_data=False)], outputs=[triton_http.InferRequestedOutput("embedding", binary_data=False)])
    assert np.allclose(plain.as_numpy("embedding"), want, atol=1e-6)
    for got in (
        api.infer("home-embed", [texts(triton_http, "text", "a light")], request_compression_algorithm="gzip", response_compression_algorithm="gzip"),
        api.async_infer("home-embed", [texts(triton_http, "text", "a light")]).get_result(),
    ):
        assert np.array_equal(got.as_numpy("embedding"), want)


@call("http.aio, grpc.aio: infer", "the same numbers")
async def _():
    got = []
    for kind, sync in ((triton_http_aio, triton_http), (triton_grpc_aio, triton_grpc)):
        async with kind.InferenceServerClient(ADDRESS) as api:
            assert await api.is_model_ready("home-embed")
            got.append((await api.infer("home-embed", [texts(sync, "text", "a light")])).as_numpy("embedding"))
    assert np.array_equal(*got)


@call("http, grpc: unload_model, load_model", "a model goes and comes")
def _():
    for _, kind in KINDS:
        api = one(kind)
        api.unload_model("plain")
        with rejects(InferenceServerException):
            api.infer("plain", [texts(kind, "text_input", "a")])
        api.load_model("plain")
        assert api.infer("plain", [texts(kind, "text_input", "a")]).as_numpy("text_output")[0]


