#!/usr/bin/env bash
# Ctrl-C in shoal chat where no reply runs: a server that takes the connection and says nothing, one that takes none.
source "$(dirname "$0")/lib.sh"
command -v script >/dev/null || skip "script (bsdutils) is not there"
export XDG_STATE_HOME=$work/state NO_COLOR=1
source tests/e2e/terminal.bash
# Says which models it has to who asks first, and to nobody else; "full": it takes no connection after that.
cat >"$work/mute.py" <<'END_OF_SERVER'
import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(0)
print(f"http://127.0.0.1:{s.getsockname()[1]}", flush=True)
if sys.argv[1] != "mute":
    c = s.accept()[0]
    c.recv(65536)
    body = b'{"data": [{"id": "m", "task": "generate"}]}'
    c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
kept = []
while sys.argv[1] == "full":
    c = socket.socket()
    c.settimeout(0.2)
    kept.append(c)
    try:
        c.connect(s.getsockname())
    except socket.timeout:
        break
print("so be it", flush=True)
while sys.argv[1] != "full": kept.append(s.accept())
time.sleep(600)
END_OF_SERVER
mute() {
    [ -z "$server" ] || { kill "$server"; wait "$server" 2>/dev/null; }
    : >"$work/at"
    python3 "$work/mute.py" "$1" >"$work/at" &
    server=$!
    for _ in $(seq 200); do [ -s "$work/at" ] && break; sleep 0.05; done
    url=$(head -1 "$work/at")
}
settled() { for _ in $(seq 200); do grep -q 'so be it' "$work/at" && return; sleep 0.05; done; fail "the server is not full"; }
# waits: for a server, so that Ctrl-C is for that: the terminal is not the line's any more, and it sleeps.
waits() {
    local pid
    for _ in $(seq 400); do
        pid=$(pgrep -f "^$SHOAL_BIN chat --server $url" | head -1)
        stty -F "$(readlink "/proc/$pid/fd/0")" -a 2>/dev/null | grep -qE '(^| )isig( |$)' &&
            grep -q '^State:.S' "/proc/$pid/status" && return
        sleep 0.05
    done
    fail "it does not wait for the server: $(tail -c 400 "$screen" | cat -v)"
}

for kind in once full; do
    mute $kind
    at_terminal chat --server "$url" m --no-home --no-history
    settled
    keys '/model other\r'
    await '/model other'
    waits
    keys '\003'
    await 'shoal chat: stopped while'
    await '^> '
    keys 'hello\r'
    await 'hello'
    waits
    keys '\003'
    await 'stopped: 0 tokens'
    await '^> '
    keys '/model\r'
    await '^m, of http'
    leave
done

# before there is a conversation it ends
mute mute
mkfifo "$work/keys2"
env --default-signal=INT script -qefc "'$SHOAL_BIN' chat --server $url" /dev/null <"$work/keys2" >"$work/shown" 2>&1 &
typist=$!
exec 9>"$work/keys2"
for _ in $(seq 40); do # until it has begun, and the key is for it
    sleep 0.5
    kill -0 "$typist" 2>/dev/null || break
    (keys '\003') # alone: there may be nobody any more who reads it
done
wait "$typist"
[ $? -eq 130 ] || fail "it ends with $?: $(cat -v "$work/shown")"
exec 9>&-
kill "$server"
wait "$server" 2>/dev/null
server=
echo "a server that is mute, and one that is full"
