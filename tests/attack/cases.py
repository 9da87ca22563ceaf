"""cases.py: what hostile clients do, by transport and kind.

A case is a function of (where, go). It runs in 4 or 8 processes at once, does a bounded amount of work, and returns; errors of
the connection end it. `go` is an object:

    go.round()     after each round: it counts, and is False when the run is over
    go.hold()      keeps what is open open until the run is over
"""
import gzip
import json
import struct
import time
import zlib

from wires import (BINARY, CONTINUATION, COMPRESSED, DATA, END_HEADERS, END_STREAM, FIN, HEADERS, PING, PRIORITY, RST_STREAM,
                   SETTINGS, TEXT, WS_PING, Grpc, Http2, WebSocket, connect, drain, field, frame, grpc_message, head1,
                   hpack_literal, post1, reset, ws_frame)

TRANSPORTS = ["http1", "unix", "http2", "ws", "ws-http2", "grpc"]
KINDS = ["slow", "many", "large", "nested", "compressed", "cancelled"]
CASES = []  # (transport, kind, name, function)

CLASSIFY, MODEL = "/v1/classify", "home-intent"
CHAT = {"model": "home-chat-s", "stream": True, "max_tokens": 800, "ignore_eos": True,
        "messages": [{"role": "user", "content": "tell me everything"}]}
CHAT_BYTES = json.dumps(CHAT).encode()
ASK_BYTES = json.dumps({"model": MODEL, "input": "turn on the light"}).encode()
LARGE_JSON = {
    "objects": b'{"model":"home-intent","input":"a","x":[' + b"{}," * 300_000 + b"{}]}",
    "keys": b'{"model":"home-intent","input":"a"' + b"".join(b',"k%d":1' % i for i in range(80_000)) + b"}",
    "biases": b'{"model":"home-chat-s","messages":[],"logit_bias":{' + b",".join(b'"%d":1' % i for i in range(70_000)) + b"}}",
    "texts": b'{"model":"home-intent","input":[' + b",".join([b'"a b c"'] * 100_000) + b"]}",
    "cut": b'{"model":"home-intent","x":[' + b"[]," * 300_000,
}
DEEP_JSON = {"lists": b"[" * 900_000, "objects": b'{"a":' * 180_000,
             "in a field": b'{"model":"home-intent","input":' + b"[" * 400_000 + b"]" * 400_000 + b"}"}
ZEROS = 256 << 20  # what a bomb unpacks to


def case(transports, kind, name):
    def add(f):
        CASES.extend((t, kind, name, f) for t in transports.split())
        return f
    return add


def gzip_bomb():
    out, pack = b"", zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(ZEROS >> 20):
        out += pack.compress(bytes(1 << 20))
    return out + pack.flush()


def deflate_bomb():
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    out = b"".join(pack.compress(b" " * (1 << 20)) for _ in range(ZEROS >> 20))
    return (out + pack.flush(zlib.Z_SYNC_FLUSH))[:-4]  # RFC 7692, 7.2.1


def zstd_bomb():
    """RFC 8878: a frame without content size, of blocks that repeat one byte 128 KiB long."""
    block = 1 << 17
    head = b"\x28\xb5\x2f\xfd" + bytes([0, 7 << 3])  # window of 128 KiB
    def rle(last):
        return struct.pack("<I", last | 1 << 1 | block << 3)[:3] + b" "
    return head + rle(0) * (ZEROS // block - 1) + rle(1)


def small_steps(s, data, go):
    """A byte at a time, a thousand steps at most."""
    for i in range(min(len(data), 1000)):
        s.sendall(data[i : i + 1])
        time.sleep(0.05)
        if i % 20 == 19 and not go.round():
            return
    go.hold()


# ---- HTTP/1.1, over TCP and a Unix socket ------------------------------------------------------------------


@case("http1 unix", "slow", "heads")
def slow_heads(where, go):
    small_steps(connect(where), head1("GET", "/healthz", *(f"X-{i}: 1" for i in range(200))), go)


@case("http1 unix", "slow", "bodies")
def slow_bodies(where, go):
    for _ in range(4):
        s = connect(where)
        s.sendall(head1("POST", CLASSIFY, length=1000))
        go.keep(s)
    small_steps(s, b" " * 1000, go)


@case("http1 unix", "slow", "uploads")
def slow_uploads(where, go):
    for path in ["/v1/files", "/v1/audio/transcriptions?model=home-ears", "/v1/collections/x/documents"] * 3:
        s = connect(where)
        s.sendall(head1("POST", path, "Content-Type: multipart/form-data; boundary=x", length=100_000) + b"--x\r\n")
        go.keep(s)
    go.round()
    go.hold()


@case("http1 unix", "slow", "large bodies that stop before their end")
def slow_large_bodies(where, go):
    for _ in range(12):
        s = connect(where)
        s.sendall(head1("POST", CLASSIFY, length=1_000_000))
        s.settimeout(5)
        go.keep(s)
        try:
            s.sendall(b" " * 990_000)
        except OSError:
            pass
    go.round()
    go.hold()


@case("http1 unix", "slow", "answers that nobody reads")
def slow_reading(where, go):
    s = connect(where)
    s.settimeout(1)
    try:
        for _ in range(3000):
            s.sendall(head1("GET", "/metrics"))
    except OSError:
        pass
    go.round()
    go.hold()


@case("http1 unix", "many", "idle connections")
def many_idle(where, go):
    for _ in range(24):
        go.keep(connect(where))
    go.round()
    go.hold()


@case("http1 unix", "many", "pipelined requests")
def many_pipelined(where, go):
    for _ in range(20):
        s = connect(where)
        s.sendall((head1("GET", "/healthz") * 400) + post1(CLASSIFY, b"{") * 200)
        s.shutdown(1)
        drain(s)
        if not go.round():
            return


@case("http1 unix", "many", "chunks of one byte")
def many_chunks(where, go):
    for _ in range(5):
        s = connect(where)
        s.sendall(head1("POST", CLASSIFY, "Transfer-Encoding: chunked") + b"1\r\n \r\n" * 100_000 + b"0\r\n\r\n")
        s.shutdown(1)
        drain(s)
        if not go.round():
            return


@case("http1 unix", "large", "heads")
def large_heads(where, go):
    for head in [head1("GET", "/" + "a" * 60_000), head1("GET", "/healthz", "X: " + "a" * 60_000),
                 head1("GET", "/healthz?" + "&".join(["a=b"] * 15_000)), head1("GET", "/healthz", *["X: 1"] * 8000)] * 20:
        s = connect(where)
        s.sendall(head)
        drain(s)
        if not go.round():
            return


@case("http1 unix", "large", "bodies")
def large_bodies(where, go):
    for _ in range(3):
        s = connect(where)
        s.sendall(head1("POST", CLASSIFY, length=1 << 40))
        drain(s)
        for path, kind in (("/v1/files", "multipart/form-data; boundary=x"), ("/v1/score?model=x", "text/csv")):
            s = connect(where)
            s.sendall(head1("POST", path, f"Content-Type: {kind}", length=64 << 20))
            s.sendall(b"--x\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\n")
            try:
                for _ in range(64):
                    s.sendall(b"a" * (1 << 20))
            except OSError:
                pass
            s.close()
        if not go.round():
            return


@case("http1 unix", "large", "JSON")
def large_json(where, go):
    for body in LARGE_JSON.values():
        s = connect(where)
        s.sendall(post1("/v1/chat/completions" if b"chat" in body[:30] else CLASSIFY, body))
        s.shutdown(1)
        drain(s)
        if not go.round():
            return


@case("http1 unix", "nested", "JSON")
def nested_json(where, go):
    for body in DEEP_JSON.values():
        for path in (CLASSIFY, "/v1/chat/completions", "/api/chat", "/v1/responses"):
            s = connect(where)
            s.sendall(post1(path, body))
            s.shutdown(1)
            drain(s)
        if not go.round():
            return


@case("http1 unix", "nested", "forms")
def nested_forms(where, go):
    part = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n"
    for body in (part * 15_000, b"--x\r\n" * 150_000, part.replace(b"; name", b"; b=c" * 8000 + b"; name") * 10):
        s = connect(where)
        s.sendall(head1("POST", "/v1/audio/transcriptions", "Content-Type: multipart/form-data; boundary=x", length=len(body)) + body)
        s.shutdown(1)
        drain(s)
        if not go.round():
            return


@case("http1 unix", "compressed", "bombs")
def bombs(where, go):
    paths = [(CLASSIFY, "application/json"), ("/v1/files", "multipart/form-data; boundary=x"),
             ("/v1/audio/transcriptions?model=home-ears", "audio/wav"), ("/v1/collections/x/documents", "text/plain")]
    for coding, bomb in (("zstd", zstd_bomb()), ("gzip", gzip_bomb())):
        for path, kind in paths:
            s = connect(where)
            s.sendall(head1("POST", path, f"Content-Type: {kind}", f"Content-Encoding: {coding}", length=len(bomb)) + bomb)
            s.shutdown(1)
            drain(s)
            if not go.round():
                return


@case("http1 unix", "cancelled", "streams")
def cancelled_streams(where, go):
    for i in range(150):
        s = connect(where)
        s.sendall(post1("/v1/chat/completions", CHAT_BYTES))
        if i % 3 == 0:
            s.recv(100)
        s.close() if i % 2 else reset(s)
        if not go.round():
            return


# ---- HTTP/2 ------------------------------------------------------------------------------------------------


@case("http2", "slow", "half a header block")
def half_heads(where, go):
    for _ in range(16):
        h = Http2(where)
        h.s.sendall(frame(HEADERS, 0, 1, hpack_literal(":method", "GET")))
        go.keep(h)
    go.round()
    go.hold()


@case("http2", "slow", "bodies")
def half_bodies(where, go):
    h = Http2(where)
    for path in (CLASSIFY, "/v1/files", "/v1/audio/transcriptions?model=home-ears") * 8:
        h.send(h.open("POST", path, ("content-type", "multipart/form-data; boundary=x"), end=False), b"-")
    go.round()
    go.hold()


@case("http2", "slow", "closed windows")
def closed_windows(where, go):
    h = Http2(where, window=0)
    for _ in range(90):
        h.open("GET", "/openapi.json")
    go.round()
    go.hold()


@case("http2", "many", "requests of a connection")
def many_streams(where, go):
    for _ in range(10):
        h = Http2(where)
        for _ in range(6):
            streams = [h.open("GET", "/healthz") for _ in range(90)]
            h.ended(streams[-1])
        h.s.close()
        if not go.round():
            return


def flood(name, kind, data):
    @case("http2", kind, name)
    def run(where, go):
        for _ in range(3):
            h = Http2(where)
            h.open("POST", CLASSIFY, end=False)
            h.s.sendall(data)
            h.s.shutdown(1)
            drain(h.s)
            if not go.round():
                return


flood("pings", "many", frame(PING, 0, 0, b"12345678") * 20_000)
flood("settings", "many", frame(SETTINGS, 0, 0) * 20_000)
flood("priorities", "many", frame(PRIORITY, 0, 1, struct.pack(">IB", 0, 1)) * 60_000)
flood("empty DATA", "many", frame(DATA, 0, 1) * 60_000)
flood("window updates", "many", frame(8, 0, 1, struct.pack(">I", 1)) * 60_000)
flood("CONTINUATION", "large", frame(HEADERS, 0, 3, Http2.block("GET", "/")) + frame(CONTINUATION, 0, 3, hpack_literal("x", "a" * 8000)) * 300)


@case("http2", "large", "bodies and JSON")
def large_h2(where, go):
    for body in LARGE_JSON.values():
        h = Http2(where)
        h.send(stream := h.open("POST", CLASSIFY, ("content-type", "application/json"), end=False), body, end=True)
        h.ended(stream)
        if not go.round():
            return


@case("http2", "nested", "JSON")
def nested_h2(where, go):
    for body in DEEP_JSON.values():
        h = Http2(where)
        h.send(stream := h.open("POST", CLASSIFY, ("content-type", "application/json"), end=False), body, end=True)
        h.ended(stream)
        if not go.round():
            return


@case("http2", "compressed", "bombs")
def bombs_h2(where, go):
    for coding, bomb in (("zstd", zstd_bomb()), ("gzip", gzip_bomb())):
        for path in (CLASSIFY, "/v1/files", "/v1/audio/transcriptions?model=home-ears"):
            h = Http2(where)
            stream = h.open("POST", path, ("content-encoding", coding), ("content-type", "multipart/form-data; boundary=x"), end=False)
            h.send(stream, bomb, end=True)
            h.ended(stream)
            if not go.round():
                return


@case("http2", "compressed", "header tables")
def hpack_bomb(where, go):
    """One entry of 4,000 bytes in the dynamic table, named by a byte each time."""
    entry = b"\x40" + hpack_literal("x", "a" * 3900)[1:]
    for _ in range(10):
        h = Http2(where)
        h.s.sendall(frame(HEADERS, END_HEADERS | END_STREAM, 1, Http2.block("GET", "/healthz") + entry + b"\xbe" * 12_000))
        for i in range(3, 200, 2):
            h.s.sendall(frame(HEADERS, END_HEADERS | END_STREAM, i, Http2.block("GET", "/healthz") + b"\xbe" * 12))
        h.s.shutdown(1)
        drain(h.s)
        if not go.round():
            return


@case("http2", "cancelled", "rapid resets")
def rapid_resets(where, go):
    for _ in range(10):
        h = Http2(where)
        for i in range(3000):
            h.open("POST", "/v1/chat/completions", end=False)
            stream = h.next_stream - 2
            h.s.sendall(frame(DATA, END_STREAM, stream, CHAT_BYTES) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
        if not go.round():
            return


@case("http2", "cancelled", "connections")
def cancelled_h2(where, go):
    for i in range(100):
        h = Http2(where)
        for _ in range(8):
            h.send(h.open("POST", "/v1/chat/completions", end=False), CHAT_BYTES, end=True)
        reset(h.s)
        if not go.round():
            return


# ---- WebSockets, over HTTP/1.1 and over HTTP/2 -------------------------------------------------------------

OVER = {"ws": "http1", "ws-http2": "http2"}


def ask(i, path=CLASSIFY, body=None):
    return json.dumps({"id": str(i), "path": path, "body": body or {"model": MODEL, "input": "light"}}).encode()


@case("ws ws-http2", "slow", "half frames and messages")
def ws_half(where, go):
    for i in range(12):
        w = WebSocket(where, OVER[go.transport])
        w.send((b"\x81", ws_frame(TEXT, b"{", bits=0), ws_frame(TEXT, b"x" * 1000)[:500])[i % 3])
        go.keep(w)
    go.round()
    go.hold()


@case("ws ws-http2", "slow", "at rest")
def ws_idle(where, go):
    for _ in range(16):
        go.keep(WebSocket(where, OVER[go.transport]))
    go.round()
    go.hold()


def ws_flood(name, kind, message):
    @case("ws ws-http2", kind, name)
    def run(where, go):
        for _ in range(3):
            w = WebSocket(where, OVER[go.transport])
            for first in range(0, 10_000, 100):  # the server may rest it while its answers are unread
                w.send(b"".join(message(i) for i in range(first, first + 100)))
                if not go.round():
                    return
            w.drain()


ws_flood("requests", "many", lambda i: ws_frame(TEXT, ask(i)))
ws_flood("pings", "many", lambda i: ws_frame(WS_PING, b"x"))
ws_flood("nonsense", "many", lambda i: ws_frame(TEXT, b"{"))
ws_flood("empty fragments", "many", lambda i: ws_frame(0 if i else TEXT, b"", bits=0))
ws_flood("start and cancel", "cancelled", lambda i: ws_frame(TEXT, ask(i, "/v1/chat/completions", CHAT))
         + ws_frame(TEXT, b'{"id":"%d","cancel":true}' % i))


@case("ws ws-http2", "cancelled", "sockets")
def ws_gone(where, go):
    for _ in range(60):
        w = WebSocket(where, OVER[go.transport])
        w.send(b"".join(ws_frame(TEXT, ask(i, "/v1/chat/completions", CHAT)) for i in range(8)))
        reset(w.h2.s if w.h2 else w.s)
        if not go.round():
            return


def ws_messages(name, kind, messages):
    @case("ws ws-http2", kind, name)
    def run(where, go):
        for m in messages():
            w = WebSocket(where, OVER[go.transport], deflate=kind == "compressed")
            try:
                w.send(m)
                w.send(ws_frame(CLOSE_OPCODE))
                w.drain()
            except OSError:
                pass
            if not go.round():
                return


CLOSE_OPCODE = 8
ws_messages("JSON", "large", lambda: [ws_frame(TEXT, b'{"id":"1","path":"/v1/classify","body":' + b + b"}") for b in LARGE_JSON.values()])
ws_messages("lengths", "large", lambda: [b"\x82\xff" + struct.pack(">Q", (1 << 62)) + b"\0\0\0\0", ws_frame(BINARY, bytes(8 << 20)),
                                         b"".join(ws_frame(TEXT if i == 0 else 0, b" " * 50_000, bits=0) for i in range(60))])
ws_messages("JSON", "nested", lambda: list(ws_frame(TEXT, b) for b in DEEP_JSON.values()))
ws_messages("bombs", "compressed", lambda: [ws_frame(TEXT, deflate_bomb(), bits=FIN | COMPRESSED)] * 4)


# ---- gRPC --------------------------------------------------------------------------------------------------

GRPC_CLASSIFY = "/shoal.v1.Shoal/Classify"
CLASSIFY_PROTO = field(1, MODEL) + field(2, "turn on the light")
CHAT_PROTO = field(1, "home-chat-s") + field(100, json.dumps({k: v for k, v in CHAT.items() if k not in ("model", "stream")}))


@case("grpc", "slow", "half messages")
def grpc_half(where, go):
    g = Grpc(where)
    for _ in range(50):
        g.send(g.call(GRPC_CLASSIFY), b"\0\0\0")
    go.round()
    go.hold()


@case("grpc", "slow", "watches")
def grpc_watch(where, go):
    for _ in range(12):
        g = Grpc(where)
        g.send(g.call("/grpc.health.v1.Health/Watch"), grpc_message(b""), end=True)
        go.keep(g)
    go.round()
    go.hold()


@case("grpc", "many", "calls")
def grpc_calls(where, go):
    g = Grpc(where)
    for _ in range(20):
        for _ in range(60):
            g.send(stream := g.call(GRPC_CLASSIFY), grpc_message(CLASSIFY_PROTO), end=True)
        g.ended(stream)
        if not go.round():
            return


@case("grpc", "many", "messages of a stream")
def grpc_stream(where, go):
    g = Grpc(where)
    stream = g.call("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    for _ in range(20):
        g.send(stream, grpc_message(field(7, "")) * 1000)
        if not go.round():
            return


@case("grpc", "many", "empty messages")
def grpc_empty(where, go):
    g = Grpc(where)
    for _ in range(10):
        stream = g.call("/shoal.v1.Shoal/Transcribe")
        g.send(stream, grpc_message(b"") * 100_000, end=True)
        g.ended(stream)
        if not go.round():
            return


@case("grpc", "large", "messages")
def grpc_large(where, go):
    g = Grpc(where)
    for data in (b"\0\xff\xff\xff\xff", grpc_message(field(1, MODEL) + field(2, "a b") * 150_000),
                 grpc_message(field(1, MODEL) + field(100, LARGE_JSON["objects"])), grpc_message(bytes(900_000)),
                 grpc_message(b"\x98\x06\x01" * 300_000)):  # unknown fields
        g.send(stream := g.call(GRPC_CLASSIFY), data, end=True)
        g.ended(stream)
        if not go.round():
            return


@case("grpc", "nested", "groups and JSON")
def grpc_nested(where, go):
    g = Grpc(where)
    deep = b""
    for _ in range(5000):
        deep = field(2, deep)[:60_000]
    for data in (b"\x9b\x06" * 450_000, deep, field(1, MODEL) + field(100, DEEP_JSON["objects"])):
        g.send(stream := g.call(GRPC_CLASSIFY), grpc_message(data), end=True)
        g.ended(stream)
        if not go.round():
            return


@case("grpc", "compressed", "bombs")
def grpc_bomb(where, go):
    bomb = gzip_bomb()
    g = Grpc(where)
    for method in (GRPC_CLASSIFY, "/inference.GRPCInferenceService/ModelInfer", "/shoal.v1.Shoal/Transcribe"):
        g.send(stream := g.call(method, ("grpc-encoding", "gzip")), grpc_message(bomb, True), end=True)
        g.ended(stream)
        if not go.round():
            return


@case("grpc", "compressed", "small messages")
def grpc_packed(where, go):
    packed = grpc_message(gzip.compress(field(7, "")), True)
    g = Grpc(where)
    stream = g.call("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ("grpc-encoding", "gzip"))
    for _ in range(20):
        g.send(stream, packed * 500)
        if not go.round():
            return


@case("grpc", "cancelled", "calls")
def grpc_cancelled(where, go):
    for _ in range(10):
        g = Grpc(where)
        for _ in range(1000):
            g.send(stream := g.call("/shoal.v1.Shoal/ChatStream"), grpc_message(CHAT_PROTO), end=True)
            g.s.sendall(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
        if not go.round():
            return
