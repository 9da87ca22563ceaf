#!/usr/bin/env bash
# Unix sockets beside and in place of a port: everything over them, whose they are, and what an earlier process left.
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "there is no python3"
export SHOAL_STATE=$work/state XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$work/run"
a=$work/a.sock b=$work/b.sock
config() { # LISTEN ALSO
    cat >"$work/shoal.yaml" <<EOF
listen: $1
also_listen: $2
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-chat-s}]
EOF
}
mode() { stat -c %a "$1"; }
over() { curl -s -m 20 --unix-socket "$1" "${@:2}"; }

# ---- beside a port, with modes
group=$(id -gn)
config 127.0.0.1:0 "[\"unix:$a\", {address: \"unix:$b\", mode: \"0660\", group: $group}, \"127.0.0.1:0\"]"
"$SHOAL_BIN" serve -c "$work/shoal.yaml" --check >/dev/null || fail "the configuration"
start_shoal "$work/shoal.yaml"
curl -s -m 20 "$url/healthz" | grep -q ok || fail "the port of listen"
other=$(grep -o 'address=127.0.0.1:0 port=[0-9]*' "$log" | tail -1 | grep -o '[0-9]*$')
[ "$other" != "$port" ] && curl -s -m 20 "http://127.0.0.1:$other/healthz" | grep -q ok || fail "the second port, $other"
[ "$(mode "$a") $(mode "$b")" = "600 660" ] || fail "the modes are $(mode "$a") and $(mode "$b")"
over "$a" http://localhost/v1/models | grep -q home-intent || fail "no models over a socket"
# No browser comes by a socket, so any name will do; over the port it will not.
over "$b" http://shoal/healthz | grep -q ok || fail "a socket asks for a name"
curl -s -m 20 -H 'host: shoal' "$url/healthz" | grep -q host_not_allowed || fail "the port asks for no name"
over "$a" --http2-prior-knowledge http://x/v1/classify -d '{"model":"home-intent","input":"lights on"}' | grep -q labels || fail "HTTP/2"
printf '\0\0\0\0\031\n\013home-intent\022\012lights on!' >"$work/message" # gRPC, by whatever name its client has for it
over "$a" --http2-prior-knowledge -D - -o /dev/null http://x/shoal.v1.Shoal/Classify -H 'content-type: application/grpc' \
    -H 'te: trailers' --data-binary "@$work/message" >"$work/head"
grep -q '^grpc-status: 0' "$work/head" || fail "gRPC over a socket: $(cat "$work/head")"
over "$b" -N http://x/v1/chat/completions -d '{"model":"home-chat-s","messages":[{"role":"user","content":"hi"}],"max_tokens":3,"stream":true}' |
    grep -q '\[DONE\]' || fail "a stream over a socket"
over "$b" http://x/api/chat -d '{"model":"home-chat-s","messages":[{"role":"user","content":"hi"}],"options":{"num_predict":2}}' |
    grep -q '"done":true' || fail "Ollama's API over a socket"
"$SHOAL_BIN" process --server "unix:$a" "hello" >/dev/null 2>"$work/e"
grep -q 'no pipeline' "$work/e" || fail "shoal process over a socket: $(cat "$work/e")"
python3 - "$a" <<'PY' || fail "a WebSocket over a socket"
import base64, os, socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1])
s.sendall(b"GET /v1/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
          b"Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)) + b"\r\n\r\n")
got = b""
while b"\r\n\r\n" not in got: got += s.recv(4096)
assert got.startswith(b"HTTP/1.1 101"), got
m = b'{"id":"1","method":"GET","path":"/healthz"}'
s.sendall(bytes([0x81, 0x80 | len(m), 0, 0, 0, 0]) + m)
got = got.split(b"\r\n\r\n", 1)[1]
while b'"status":"ok"' not in got: got += s.recv(4096)
PY

# ---- a socket that answers is another's, and stays so
config 127.0.0.1:0 "[\"unix:$a\"]"
"$SHOAL_BIN" serve -c "$work/shoal.yaml" >"$work/second" 2>&1 && fail "two servers listen on one socket"
grep -q "another process listens on it" "$work/second" || fail "the second said $(tail -2 "$work/second")"
over "$a" http://x/healthz | grep -q ok || fail "the first has lost its socket"

# ---- killed, it leaves them; they give way. Stopped, it takes them along.
kill -9 "$server"
wait "$server" 2>/dev/null
server=
[ -S "$a" ] || fail "what was killed took its socket along"
config "unix:$a" "[\"unix:$b\"]"
: >"$work/ready"
"$SHOAL_BIN" serve -c "$work/shoal.yaml" >"$work/ready" 2>"$log" &
server=$!
for _ in $(seq 200); do over "$a" http://x/readyz | grep -q '"status":"ready"' && break; sleep 0.05; done
over "$b" http://x/v1/models | grep -q home-intent || fail "sockets alone: $(tail -2 "$log")"
"$SHOAL_BIN" models --server "unix:$a" >/dev/null 2>&1
cp models/home-slots.gguf "$work/else.gguf"
ln -s "$work" "$work/way" # any file, as at a port: by the socket of this user that the address leads to
"$SHOAL_BIN" load "$work/else.gguf" --server "unix:$work/way/a.sock" >/dev/null 2>"$work/e" || fail "load of any file: $(cat "$work/e")"
over "$a" http://x/v1/models | grep -q '"id":"else"' || fail "a load by the socket alone"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
[ ! -e "$a" ] && [ ! -e "$b" ] || fail "the sockets are still there"
[ -z "$(ls "$work/run")" ] || fail "the server's own socket is still there: $(find "$work/run")"

# ---- what is refused, before anything starts
refused() { # WHAT PART
    config 127.0.0.1:0 "$1"
    "$SHOAL_BIN" serve -c "$work/shoal.yaml" >"$work/said" 2>&1 && fail "$1 passes"
    grep -qF "$2" "$work/said" || fail "$1: $(tail -2 "$work/said")"
}
refused '["unix:"]' "also_listen[0]: a Unix socket needs a path"
refused '["nowhere"]' "also_listen[0]: 'nowhere' is not HOST:PORT or unix:PATH"
refused "[{address: \"unix:$a\", mode: \"999x\"}]" "is no mode: four octal digits"
refused '[{address: "127.0.0.1:0", mode: "0600"}]' "'mode', 'group' and 'user_files' are a Unix socket's"
refused '[{address: "127.0.0.1:0", user_files: true}]' "'mode', 'group' and 'user_files' are a Unix socket's"
refused "[{address: \"unix:$a\", group: no-such-group}]" "there is no group 'no-such-group'"
[ ! -e "$a" ] || fail "a refused server left its socket"
touch "$a"
refused "[\"unix:$a\"]" "exists and is not a socket"
[ -f "$a" ] || fail "a file gave way to a socket"
echo "HTTP, streams, WebSockets and Ollama's API over Unix sockets; modes; stale and live ones"
