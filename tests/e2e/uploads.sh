#!/usr/bin/env bash
# Uploads that are never whole: they take no place from other requests, one key has a share of them, and each ends with
# 408 in the documented form, over HTTP/1.1 and HTTP/2, of files and of sound.
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "there is no python3"
export SHOAL_STATE=$work/state
sum() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
cat >"$work/shoal.yaml" <<END
retrieval: {max_document_mb: 8}
limits: {request_timeout_ms: 4000, max_requests: 64, max_uploads: 80, max_upload_mb: 12, max_connections: 600}
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-ears}]
api_keys: [{name: alice, sha256: $(sum k-alice)}, {name: bob, sha256: $(sum k-bob)}]
END
start_shoal "$work/shoal.yaml"
cat >"$work/uploads.py" <<'PY'
import http.client, json, select, socket, sys, urllib.parse
u = urllib.parse.urlparse(sys.argv[1])
part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f.wav"\r\n\r\n' + b"a" * 100
def begin(path, key):
    s = socket.create_connection((u.hostname, u.port)); s.settimeout(120)
    s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 100000\r\n\r\n" % (path, key) + part)
    return s
def answer(s):
    got = b""
    try:
        while True:
            more = s.recv(65536)
            if not more: break
            got += more
            head, sep, body = got.partition(b"\r\n\r\n")
            if sep and body.rstrip().endswith(b"}"): break
    except ConnectionResetError: pass
    assert got, "no answer"
    head, _, body = got.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]
def classify():
    c = http.client.HTTPConnection(u.hostname, u.port, timeout=60)
    c.request("POST", "/v1/classify", json.dumps({"model": "home-intent", "input": "turn on the light"}), {"Authorization": "Bearer k-bob"})
    r = c.getresponse(); r.read(); c.close()
    return r.status
for path in b"/v1/files", b"/v1/audio/transcriptions?model=home-ears":
    open_ = [begin(path, b"k-alice") for _ in range(256)]
    said = [classify() for _ in range(20)]
    assert said == [200] * 20, said                      # while all of them are open or refused
    answers = [answer(s) for s in open_]
    by = {}
    for status, e in answers: by.setdefault((status, e["code"], e["type"]), []).append(e)
    assert set(by) <= {(408, "request_timeout", "invalid_request_error"), (429, "too_many_uploads", "rate_limit_error")}, by.keys()
    n = {k[0]: len(v) for k, v in by.items()}
    assert n.get(408, 0) >= 20 and sum(n.values()) == 256, n   # a quarter of 80; more where some ended before the last began
    for s in open_: s.close()
    print(path.decode(), n)
# one that sends a byte now and then is too slow as well
s = begin(b"/v1/files", b"k-alice")
n_sent = 0
while not select.select([s], [], [], 0.1)[0]:
    s.send(b"a"); n_sent += 1
    assert n_sent < 5000, "it may go on for ever"
status, e = answer(s)
assert status == 408 and "min_body_rate" in e["message"], (status, e)
# and one that is as long as it may be, sent at its own pace but fast enough, comes in
body = part + b"a" * 60000 + b"\r\n--x--\r\n"
s = socket.create_connection((u.hostname, u.port)); s.settimeout(120)
s.sendall(b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer k-bob\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: %d\r\n\r\n" % len(body))
import time
for at in range(0, len(body), 500): s.sendall(body[at:at + 500]); time.sleep(0.05)  # 6 s and more, over the time-out
got = s.recv(65536); assert b" 200 " in got.split(b"\r\n")[0], got
# the room of all uploads together: alone each may be long, together they may not
def long(key):
    s = begin(b"/v1/files", key); return s
a, b = begin(b"/v1/files", b"k-bob"), None
c = socket.create_connection((u.hostname, u.port)); c.settimeout(120)
c.sendall(b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer k-bob\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 8000000\r\n\r\n" + part)
try:
    for _ in range(70): c.sendall(b"a" * 100000); a.sendall(b"a")
except (BrokenPipeError, ConnectionResetError): pass
status, e = answer(c)
assert (status, e["code"]) == (429, "too_many_requests") and "max_upload_mb" in e["message"], (status, e)
PY
python3 "$work/uploads.py" "$url" || fail "uploads over HTTP/1.1"

# ---- HTTP/2: the same end, frame by frame
cat >"$work/h2.py" <<'PY'
import socket, struct, sys, urllib.parse
u = urllib.parse.urlparse(sys.argv[1])
def frame(kind, flags, stream, data): return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data
def field(name, value): return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value  # a literal, RFC 7541 6.2.2
s = socket.create_connection((u.hostname, u.port)); s.settimeout(120)
head = b"".join(field(*f) for f in [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/v1/files"), (b":authority", b"localhost"),
    (b"authorization", b"Bearer k-alice"), (b"content-type", b"multipart/form-data; boundary=x")])
part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nabc'
s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, head) + frame(0, 0, 1, part))
got, body = b"", b""
while b"request_timeout" not in body:
    while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
        n = int.from_bytes(got[:3], "big")
        assert got[3] != 7, got   # no GOAWAY: the connection goes on
        if got[3] == 0: body += got[9:9 + n]
        got = got[9 + n:]
    if b"request_timeout" in body: break
    more = s.recv(65536)
    assert more, "the connection ended without an answer"
    got += more
PY
timeout 120 python3 "$work/h2.py" "$url" || fail "over HTTP/2"
[ -z "$(ls "$work/state" -R | grep upload-)" ] || fail "something is left: $(ls -R "$work/state")"
echo "unfinished uploads take nobody's place and end with 408"
