"""wires.py: the least of each protocol that an attacker needs, written to the byte.

A library would refuse to send half of what the cases send, so frames are made here. Every client connects to `where`:
("tcp", HOST, PORT) or ("unix", PATH). All calls raise OSError when the server closes, which ends a case.
"""
import base64
import socket
import struct

TIMEOUT_S = 30


def connect(where):
    family = socket.AF_UNIX if where[0] == "unix" else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(TIMEOUT_S)
    s.connect(where[1] if where[0] == "unix" else where[1:3])
    return s


def reset(s):
    """Close with RST instead of FIN (on TCP)."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def drain(s):
    """Read until the server closes."""
    try:
        while s.recv(1 << 16):
            pass
    except OSError:
        pass


# ---- HTTP/1.1 ----------------------------------------------------------------------------------------------


def head1(method, path, *headers, length=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def post1(path, body, *headers):
    return head1("POST", path, "Content-Type: application/json", *headers, length=len(body)) + body


# ---- HTTP/2 (RFC 9113), headers as literals without indexing (RFC 7541, 6.2.2) -----------------------------

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def hpack_int(value, bits, first=0):
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def hpack_literal(name, value):
    name, value = name.encode(), value.encode()
    return b"\0" + hpack_int(len(name), 7) + name + hpack_int(len(value), 7) + value


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class Http2:
    def __init__(self, where, window=(1 << 31) - 1):
        self.s = connect(where)
        self.buffered, self.next_stream = b"", 1
        self.window, self.windows = 65535, {}  # what the server lets us send, in all and by stream
        self.first_window = 65535
        self.s.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window)))
        if window > 65535:
            self.s.sendall(frame(WINDOW, 0, 0, struct.pack(">I", window - 65535)))

    @staticmethod
    def block(method, path, *headers):
        pairs = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost"), *headers]
        return b"".join(hpack_literal(n, v) for n, v in pairs)

    def stream(self):
        self.next_stream += 2
        return self.next_stream - 2

    def open(self, method, path, *headers, end=True):
        stream = self.stream()
        block = self.block(method, path, *headers)
        self.s.sendall(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block))
        return stream

    def send(self, stream, data, end=False):
        """DATA within the server's windows."""
        at = 0
        while at < len(data):
            n = min(16384, len(data) - at, self.window, self.windows.get(stream, self.first_window))
            if n <= 0:
                self.read()
                continue
            last = end and at + n == len(data)
            self.s.sendall(frame(DATA, END_STREAM if last else 0, stream, data[at : at + n]))
            self.window -= n
            self.windows[stream] = self.windows.get(stream, self.first_window) - n
            at += n

    def read(self):
        """The next frame: (kind, flags, stream, payload)."""
        head = self.take(9)
        kind, flags, stream = head[3], head[4], struct.unpack(">I", head[5:])[0]
        payload = self.take(int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACK:
            for i in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[i : i + 6])
                if name == 4:
                    self.windows = {k: v + value - self.first_window for k, v in self.windows.items()}
                    self.first_window = value
            self.s.sendall(frame(SETTINGS, ACK, 0))
        elif kind == WINDOW and stream == 0:
            self.window += struct.unpack(">I", payload)[0]
        elif kind == WINDOW:
            self.windows[stream] = self.windows.get(stream, self.first_window) + struct.unpack(">I", payload)[0]
        elif kind == GOAWAY:
            raise ConnectionError("GOAWAY")
        return kind, flags, stream, payload

    def take(self, n):
        while len(self.buffered) < n:
            got = self.s.recv(1 << 16)
            if not got:
                raise ConnectionError("closed")
            self.buffered += got
        out, self.buffered = self.buffered[:n], self.buffered[n:]
        return out

    def ended(self, stream):
        """Read until the server has ended this stream."""
        while True:
            kind, flags, of, _ = self.read()
            if of == stream and (kind == RST_STREAM or (kind in (HEADERS, DATA) and flags & END_STREAM)):
                return


# ---- WebSocket (RFC 6455), over HTTP/1.1 or over HTTP/2 (RFC 8441) -----------------------------------------

TEXT, BINARY, CLOSE, WS_PING = 1, 2, 8, 9
FIN, COMPRESSED = 0x80, 0x40


def ws_frame(opcode, payload=b"", bits=FIN):
    n = len(payload)
    length = bytes([128 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
    return bytes([bits | opcode]) + length + b"\0\0\0\0" + payload  # a mask of zeros


class WebSocket:
    """over: "http1" or "http2". `send` takes bytes of frames."""

    def __init__(self, where, over="http1", deflate=False):
        offer = "permessage-deflate; client_no_context_takeover"
        if over == "http2":
            self.h2 = Http2(where)
            more = [("sec-websocket-extensions", offer)] if deflate else []
            self.of = self.h2.stream()
            pairs = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/v1/ws"),
                     (":authority", "localhost"), ("sec-websocket-version", "13"), *more]
            block = b"".join(hpack_literal(n, v) for n, v in pairs)
            self.h2.s.sendall(frame(HEADERS, END_HEADERS, self.of, block))
            while self.h2.read()[0] != HEADERS:
                pass
        else:
            self.h2 = None
            self.s = connect(where)
            key = base64.b64encode(b"0123456789abcdef").decode()
            more = [f"Sec-WebSocket-Extensions: {offer}"] if deflate else []
            self.s.sendall(head1("GET", "/v1/ws", "Upgrade: websocket", "Connection: Upgrade",
                                 f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", *more))
            got = b""
            while b"\r\n\r\n" not in got:
                piece = self.s.recv(4096)
                if not piece:
                    raise ConnectionError("closed")
                got += piece
            if b" 101 " not in got.split(b"\r\n")[0] + b" ":
                raise ConnectionError(got.split(b"\r\n")[0].decode())

    def send(self, data):
        if self.h2:
            self.h2.send(self.of, data)
        else:
            self.s.sendall(data)

    def drain(self):
        if self.h2:
            self.h2.ended(self.of)
        else:
            drain(self.s)


# ---- gRPC over HTTP/2, and the least of protobuf -----------------------------------------------------------


def varint(n):
    out = []
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def field(number, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def grpc_message(data, compressed=False):
    return bytes([compressed]) + struct.pack(">I", len(data)) + data


class Grpc(Http2):
    def call(self, method, *headers):
        return self.open("POST", method, ("content-type", "application/grpc"), ("te", "trailers"), *headers, end=False)
