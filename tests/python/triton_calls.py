"""Triton's own clients, unmodified: HTTP and gRPC, sync and asyncio."""

import queue

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

    @call(f"{name}: infer, is_model_ready, get_inference_statistics", "an alias of a model")
    def _(kind=kind):
        api = one(kind)
        assert api.is_model_ready("nomic-embed-text")
        got = api.infer("nomic-embed-text", [texts(kind, "text", "a light")])
        equal(got.get_response().model_name if kind is triton_grpc else got.get_response()["model_name"], "nomic-embed-text")
        assert np.array_equal(got.as_numpy("embedding"), api.infer("home-embed", [texts(kind, "text", "a light")]).as_numpy("embedding"))
        stats = api.get_inference_statistics("nomic-embed-text", **({"as_json": True} if kind is triton_grpc else {}))
        assert int(stats["model_stats"][0]["inference_count"]) > 0

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


@call("http: infer", "a body in deflate; inputs that are missing, unknown or asked for as classes are named")
def _():
    api = one(triton_http)
    long = texts(triton_http, "text", "a light " * 30)
    got = [api.infer("home-intent", [long], request_compression_algorithm=c, response_compression_algorithm=c).as_numpy("label")[0] for c in (None, "deflate")]
    equal(got[0], got[1])
    with rejects(InferenceServerException, 'input "text" is missing; the request has "txt"'):
        api.infer("home-intent", [texts(triton_http, "txt", "a")])
    with rejects(InferenceServerException, 'no input "txt"'):
        api.infer("home-intent", [texts(triton_http, "text", "a"), texts(triton_http, "txt", "a")])
    with rejects(InferenceServerException, "classification"):
        api.infer("home-intent", [texts(triton_http, "text", "a")], outputs=[triton_http.InferRequestedOutput("label", class_count=2)])


def scalar(name, value, datatype):
    t = triton_grpc.InferInput(name, [1], datatype)
    t.set_data_from_numpy(np.array([value]))
    return t


def stream(api, model, inputs, **more):
    """What comes of one request over a stream: results, or the error."""
    came = queue.Queue()
    api.start_stream(callback=lambda result, error: came.put(error or result))
    api.async_stream_infer(model, inputs, **more)
    got = []
    while not got or not (isinstance(got[-1], Exception) or got[-1].get_response().parameters["triton_final_response"].bool_param):
        got.append(came.get(timeout=60))
    api.stop_stream()
    return got


def text_of(results):
    return b"".join(r.as_numpy("text_output")[0] for r in results if r.get_response().outputs)


WRITE = {"max_tokens": ("INT32", np.int32(12)), "temperature": ("FP32", np.float32(0))}
GENERATE = [texts(triton_grpc, "text_input", "turn on the"), *(scalar(n, v, t) for n, (t, v) in WRITE.items())]


@call("grpc: start_stream, async_stream_infer", "a text comes in pieces; the last says that it is the last")
def _():
    api = one(triton_grpc)
    whole = api.infer("home-chat-s", GENERATE)
    got = stream(api, "home-chat-s", GENERATE, request_id="7")
    assert len(got) > 1
    equal(text_of(got), whole.as_numpy("text_output")[0])
    equal(got[-1].as_numpy("finish_reason")[0], whole.as_numpy("finish_reason")[0])
    equal({r.get_response().id for r in got}, {"7"})
    empty = stream(api, "home-chat-s", GENERATE, enable_empty_final_response=True)
    equal((text_of(empty), len(empty[-1].get_response().outputs)), (text_of(got), 0))
    equal(len(stream(api, "home-chat-s", [*GENERATE, scalar("stream", False, "BOOL")])), 1)
    vector = stream(api, "home-embed", [texts(triton_grpc, "text", "a light")])
    equal([r.as_numpy("embedding").shape for r in vector], [(1, 256)])


@call("grpc: start_stream, async_stream_infer", "an error is one request's, and the stream goes on with the others")
def _():
    api = one(triton_grpc)
    assert "nobody" in str(stream(api, "nobody", GENERATE)[0])
    assert "one text" in str(stream(api, "home-chat-s", [texts(triton_grpc, "text_input", "a", "b")])[0])
    came = queue.Queue()
    api.start_stream(callback=lambda result, error: came.put(error or result))
    ids = {str(i) for i in range(100)}
    api.async_stream_infer("home-embed", [texts(triton_grpc, "txt", "a")])
    for i in ids:
        api.async_stream_infer("home-chat-s", [texts(triton_grpc, "text_input", f"a {i}"), scalar("max_tokens", np.int32(2), "INT32")], request_id=i)
    done, errors = set(), []
    while len(done) < len(ids):
        r = came.get(timeout=60)
        if isinstance(r, Exception):
            errors.append(str(r))
        elif r.get_response().parameters["triton_final_response"].bool_param:
            done.add(r.get_response().id)
    api.stop_stream()
    equal((done, len(errors)), (ids, 1))
    assert '"txt"' in errors[0]


@call("http, grpc: get_model_config, get_inference_statistics", "what a model takes, and how often it answered")
def _():
    http, grpc = one(triton_http), one(triton_grpc)
    config = http.get_model_config("home-chat-s")
    equal(config["model_transaction_policy"]["decoupled"], True)
    equal(config["input"], [{"name": "text_input", "data_type": "TYPE_STRING", "dims": [-1]}])
    same = grpc.get_model_config("home-chat-s", as_json=True)["config"]
    equal((same["name"], same["input"][0]["data_type"], same["instance_group"][0]["kind"]), ("home-chat-s", "TYPE_STRING", "KIND_CPU"))
    equal(http.get_model_config("home-embed")["model_transaction_policy"]["decoupled"], False)

    def count():
        return http.get_inference_statistics("home-embed")["model_stats"][0]

    before = count()
    http.infer("home-embed", [texts(triton_http, "text", "counted once")])
    after = count()
    equal(after["inference_count"] - before["inference_count"], 1)
    assert after["inference_stats"]["success"]["ns"] > before["inference_stats"]["success"]["ns"] and after["last_inference"] > 0
    equal(grpc.get_inference_statistics("home-embed").model_stats[0].inference_count, after["inference_count"])
    assert {"home-embed", "home-chat-s"} <= {m.name for m in grpc.get_inference_statistics().model_stats}
    for api in (http, grpc):
        with rejects(InferenceServerException, "nope"):
            api.get_model_config("nope")


@call("http, grpc: get_trace_settings, get_log_settings, get_system_shared_memory_status, ...", "shown, and not changed; there is no shared memory")
def _():
    for name, kind in KINDS:
        api = one(kind)
        assert api.get_trace_settings() and api.get_trace_settings("home-embed") and api.get_log_settings()
        with rejects(InferenceServerException, "cannot be changed"):
            api.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]})
        with rejects(InferenceServerException, "cannot be changed"):
            api.update_log_settings({"log_info": False})
        for status in (api.get_system_shared_memory_status(), api.get_cuda_shared_memory_status()):
            equal(len(status if name == "http" else status.regions), 0)
        api.unregister_system_shared_memory()
        api.unregister_cuda_shared_memory()
        with rejects(InferenceServerException, "not offered"):
            api.register_system_shared_memory("a", "/a", 64)


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


