#!/usr/bin/env bash
# POST /v1/files: large files with little memory, over HTTP/1.1, HTTP/2 and packed; clients that lie, stall and leave.
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "there is no python3"
export SHOAL_STATE=$work/state
cat >"$work/shoal.yaml" <<EOF
retrieval: {memory_mb: 64, max_document_mb: 64}
limits: {request_timeout_ms: 2000}
manifest: $PWD/models/models.json
models: [{name: home-embed}]
EOF
start_shoal "$work/shoal.yaml"
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
rss() { awk '/VmHWM/ { print $2 }' "/proc/$(gateway)/status"; }
head -c 60000000 /dev/urandom >"$work/big"
head -c 300000 /dev/urandom >"$work/small"
: >"$work/empty"

# ---- what comes in goes out, and little of it was in memory
curl -s -m 20 -F purpose=user_data -F file=@"$work/small" "$url/v1/files" >/dev/null
before=$(rss)
said=$(curl -s -m 60 -H Expect: -F purpose=user_data -F file=@"$work/big" "$url/v1/files")
[ "$(field "$said" '(d["bytes"], d["filename"], d["purpose"], d["status"])')" = "(60000000, 'big', 'user_data', 'processed')" ] || fail "$said"
grown=$(($(rss) - before))
[ "$grown" -lt 40000 ] || fail "a file of 60 MB took $grown KiB of memory"
id=$(field "$said" 'd["id"]')
curl -s -m 60 "$url/v1/files/$id/content" | cmp - "$work/big" || fail "another file came back"
curl -s -m 20 -X DELETE "$url/v1/files/$id" | grep -q '"deleted":true' || fail "delete"
for how in --http1.1 --http2-prior-knowledge; do
    id=$(field "$(curl -s -m 20 $how -F file=@"$work/small" "$url/v1/files")" 'd["id"]')
    curl -s -m 20 "$url/v1/files/$id/content" | cmp - "$work/small" || fail "another file came back by $how"
done
field "$(curl -s -m 20 -F file=@"$work/empty" "$url/v1/files")" 'd["bytes"]' | grep -qx 0 || fail "an empty file"
field "$(curl -s -m 20 -F file=@"$work/small" -F purpose=later "$url/v1/files")" 'd["purpose"]' | grep -qx later || fail "a purpose behind the file"
python3 - "$work/small" >"$work/form" <<'PY'
import gzip, sys
b = b'--x\r\nContent-Disposition: form-data; name="file"; filename="packed"\r\n\r\n' + open(sys.argv[1], "rb").read() + b"\r\n--x--\r\n"
sys.stdout.buffer.write(gzip.compress(b))
PY
id=$(field "$(curl -s -m 20 -H 'content-type: multipart/form-data; boundary=x' -H 'content-encoding: gzip' --data-binary @"$work/form" "$url/v1/files")" 'd["id"]')
curl -s -m 20 "$url/v1/files/$id/content" | cmp - "$work/small" || fail "another file came back packed"

# ---- what is refused leaves nothing
count() { field "$(curl -s -m 20 "$url/v1/files")" 'len(d["data"])'; }
had=$(count)
head -c 70000000 /dev/zero >"$work/toobig"
curl -s -m 60 -H Expect: -F file=@"$work/toobig" "$url/v1/files" | grep -q request_too_large || fail "over the limit"
curl -s -m 20 -F purpose=x "$url/v1/files" | grep -q 'must have a file with a name' || fail "no file"
curl -s -m 20 -F 'file=text' "$url/v1/files" | grep -q 'must have a file with a name' || fail "a file without a name"
curl -s -m 20 "$url/v1/files" -d '{}' | grep -q 'send the file in a form' || fail "JSON"
curl -s -m 20 -H 'content-type: multipart/form-data; boundary=x' --data-binary 'nonsense' "$url/v1/files" | grep -q '"error"' || fail "nonsense"
python3 - "$url" <<'PY' || fail "a client that lies, stalls or leaves"
import socket, sys, time, urllib.parse
u = urllib.parse.urlparse(sys.argv[1])
part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' + b"a" * 400000
def send(length, body):
    s = socket.create_connection((u.hostname, u.port)); s.settimeout(20)
    s.sendall(b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: %d\r\n\r\n" % length + body)
    return s
def answer(s):
    got = b""
    while b"\r\n\r\n" not in got or not got.endswith(b"}"):
        more = s.recv(65536)
        if not more: break
        got += more
    return got
whole = part + b"\r\n--x--\r\n"
got = answer(send(len(whole), whole)); assert b" 200 " in got, got
got = answer(send(len(part), part)); assert b" 400 " in got, got          # the form has no end
s = send(len(whole) + 100, whole); s.shutdown(socket.SHUT_WR); got = answer(s)
assert b" 200 " not in got, got                                           # shorter than it said
got = answer(send(len(whole) + 100, whole)); assert b" 408 " in got, got  # it stalls
for _ in range(20): send(len(whole), part).close()                        # it leaves
PY
for _ in $(seq 400); do curl -s "$url/metrics" | grep -qx 'shoal_connections 1' && break; sleep 0.05; done # the asker's
[ "$(count)" = $((had + 1)) ] || fail "there are $(count) files, wanted $((had + 1))"
[ -z "$(ls "$work/state" -R | grep upload-)" ] || fail "something is left: $(ls -R "$work/state")"
curl -s -m 5 "$url/healthz" | grep -q ok || fail "the server is gone"
open=$(ls "/proc/$(gateway)/fd" | wc -l)
for _ in $(seq 10); do curl -s -m 20 -F file=@"$work/small" "$url/v1/files" >/dev/null; done
for _ in $(seq 400); do [ "$(ls "/proc/$(gateway)/fd" | wc -l)" -le "$open" ] && break; sleep 0.05; done # the last is being closed
[ "$(ls "/proc/$(gateway)/fd" | wc -l)" -le "$open" ] || fail "descriptors stay open"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
echo "60 MB took $grown KiB more memory; lies, stalls and leavers leave nothing"
