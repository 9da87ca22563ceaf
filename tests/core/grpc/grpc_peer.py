"""The other end of test_interop.c: Google's gRPC (Debian: python3-grpcio), with bytes for messages.

    grpc_peer.py server [CERT KEY CA]          prints its port; echoes; ends when its input does
    grpc_peer.py client HOST:PORT [CERT KEY CA NAME]   asks our server everything; prints "ok" or what is wrong
"""
import sys
from concurrent import futures

import grpc


def read(path):
    with open(path, "rb") as f:
        return f.read()


def unary(request, context):
    context.send_initial_metadata((("x-head", dict(context.invocation_metadata()).get("x-ask", "-")),))
    context.set_trailing_metadata((("x-tail", "t"),))
    return request


def total(requests, context):
    n = [len(r) for r in requests]
    return b"%d messages, %d bytes" % (len(n), sum(n))


def flood(request, context):
    for _ in range(int(request)):
        yield bytes(1024)


def echo(requests, context):
    for r in requests:
        if r == b"enough":
            context.abort(grpc.StatusCode.ABORTED, "h\u00e9 100 %")
        yield r


def serve(tls):
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Sum": grpc.stream_unary_rpc_method_handler(total),
        "Flood": grpc.unary_stream_rpc_method_handler(flood),
        "Echo": grpc.stream_stream_rpc_method_handler(echo),
    }
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("p.P", handlers),))
    if tls:
        cert, key, ca = map(read, tls)
        credentials = grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=True)
        port = server.add_secure_port("127.0.0.1:0", credentials)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(None)


def check(what, got, wanted):
    if got != wanted:
        print(f"{what}: {got!r}, not {wanted!r}", flush=True)
        sys.exit(1)


def ask(address, tls):
    if tls:
        cert, key, ca = map(read, tls[:3])
        credentials = grpc.ssl_channel_credentials(ca, key, cert)
        channel = grpc.secure_channel(address, credentials, (("grpc.ssl_target_name_override", tls[3]),))
    else:
        channel = grpc.insecure_channel(address)
    check("unary", channel.unary_unary("/s.S/Unary")(b"hello", timeout=20), b"hello")
    sums = channel.stream_unary("/s.S/Sum")(iter([bytes(1000)] * 500), timeout=20)
    check("client stream", sums, b"500 messages, 500000 bytes")
    check("empty stream", channel.stream_unary("/s.S/Sum")(iter([]), timeout=20), b"0 messages, 0 bytes")
    got = [len(r) for r in channel.unary_stream("/s.S/Flood")(b"", timeout=20)]
    check("server stream", (len(got), sum(got)), (2000, 2048000))
    words = [b"w%d" % i * (1 + i % 300) for i in range(1000)]
    check("echo", list(channel.stream_stream("/s.S/Echo")(iter(words), timeout=20)), words)
    meta = channel.stream_stream("/s.S/Meta")(iter([]), timeout=20, metadata=(("x-ask", "why"),))
    check("metadata", dict(meta.initial_metadata())["x-head"], "why")
    check("trailers", (list(meta), dict(meta.trailing_metadata())["x-tail"]), ([], "t"))
    refused = channel.stream_stream("/s.S/Refuse")(iter(words), timeout=20)
    check("refused", (refused.code(), refused.details()), (grpc.StatusCode.PERMISSION_DENIED, "not you"))
    cancelled = channel.stream_stream("/s.S/Echo")(iter(words), timeout=20)
    next(cancelled)
    cancelled.cancel()
    late = channel.stream_stream("/s.S/Hold")(iter([b"x"]), timeout=0.05)
    check("late", late.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
    check("still there", channel.unary_unary("/s.S/Unary")(b"bye", timeout=20), b"bye")
    print("ok", flush=True)


if sys.argv[1] == "server":
    serve(sys.argv[2:])
else:
    ask(sys.argv[2], sys.argv[3:])
