#!/usr/bin/env bash
# What a hostile or broken client sends gets an error that names the cause, or a closed connection; and
# the server serves on, checked after each.
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<EOF
limits: {max_body_bytes: 100000, max_connections: 30, request_timeout_ms: 3000}
manifest: $PWD/models/models.json
models: [{name: home-intent}]
EOF
start_shoal "$work/c.yaml"
n=0

alive() {
    [ "$(curl -s -o "$work/a" -w '%{http_code}' -m 10 "$url/v1/classify" -d '{"model":"home-intent","input":"hello"}')" = 200 ] ||
        fail "after $1: $(cat "$work/a")"
    n=$((n + 1))
}

# raw NAME WANTED BYTES (a printf format): the answer has WANTED, or with "" the connection just closes.
raw() {
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    # shellcheck disable=SC2059
    printf "$3" >&3 2>/dev/null
    timeout 30 cat <&3 >"$work/r" 2>/dev/null || [ $? -ne 124 ] || fail "$1: the connection stays open"
    exec 3<&-
    grep -aq -- "$2" "$work/r" || fail "$1: wanted $2, got $(head -c 300 "$work/r")"
    alive "$1"
}

# body NAME STATUS WANTED BYTES
body() {
    local got
    got=$(printf '%s' "$4" | curl -s -o "$work/b" -w '%{http_code}' -m 10 "$url/v1/classify" --data-binary @-)
    [ "$got" = "$2" ] || fail "$1: status $got, wanted $2: $(head -c 300 "$work/b")"
    grep -aq -- "$3" "$work/b" || fail "$1: wanted $3, got $(head -c 300 "$work/b")"
    alive "$1"
}

host='Host: x\r\n'
post="POST /v1/classify HTTP/1.1\r\n$host"
raw "length and coding" "HTTP/1.1 400" "${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
raw "two lengths" "HTTP/1.1 400" "${post}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"
raw "obscure coding" "HTTP/1.1 400" "${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"
raw "folded header" "folded header" "GET / HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n"
raw "bare LF" "HTTP/1.1 400" "GET / HTTP/1.1\nHost: x\n\n"
raw "no host" "HTTP/1.1 400" "GET / HTTP/1.1\r\n\r\n"
raw "NUL in a header" "control character" "GET / HTTP/1.1\r\n${host}X: a\000b\r\n\r\n"
raw "many headers" "HTTP/1.1 431" "GET / HTTP/1.1\r\n$host$(for i in $(seq 300); do printf 'X%d: 1\\r\\n' "$i"; done)\r\n"
raw "long header" "HTTP/1.1 431" "GET / HTTP/1.1\r\n${host}X: $(head -c 60000 /dev/zero | tr '\0' a)\r\n\r\n"
raw "long body" "HTTP/1.1 413" "${post}Content-Length: 200000\r\n\r\n"
raw "slow head" "HTTP/1.1 408" "GET / HT"
raw "slow body" "HTTP/1.1 408" "${post}Content-Length: 9\r\n\r\na"
raw "noise" "HTTP/1.1 400" "\001\002\377\376garbage\r\n\r\n"
raw "TLS hello" "HTTP/1.1 400" "\026\003\001\001\000\001\000\000\374\003\003"
raw "HTTP/3" "HTTP/1.1 505" "GET / HTTP/3.0\r\n\r\n"
raw "h2 noise" "" "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\377\377\377\377\377\377\377\377\377\377\377"

body "no JSON" 400 "not JSON" 'hello'
body "no object" 400 "JSON object" '[]'
body "invalid UTF-8" 400 "unable to decode" $'{"model":"home-intent","input":"\xff\xfe"}'
body "lone surrogate" 400 "Unicode" '{"model":"home-intent","input":"\ud800"}'
body "NUL" 400 "NUL" '{"model":"home-intent","input":"a\u0000b"}'
body "deep JSON" 400 "nested deeper" "$(head -c 50000 /dev/zero | tr '\0' '[')"
body "double key" 400 "duplicate" '{"model":"home-intent","model":"x","input":"a"}'
body "huge number" 400 "overflow" '{"model":"home-intent","input":"a","x":1e999}'
body "long input" 400 "128 tokens" "{\"model\":\"home-intent\",\"input\":\"$(printf 'word %.0s' $(seq 1000))\"}"
body "too large" 413 "too large" "$(head -c 120000 /dev/zero | tr '\0' a)"

# What pages of other sites can make a browser send: page NAME STATUS CURL-ARGS...
page() {
    local name=$1 want=$2 got
    shift 2
    got=$(curl -s -o "$work/p" -w '%{http_code}' -m 10 "$url/v1/classify" -d '{"model":"home-intent","input":"hello"}' "$@")
    [ "$got" = "$want" ] || fail "$name: status $got, wanted $want: $(head -c 300 "$work/p")"
    alive "$name"
}
json='Content-Type: application/json'
page "a rebound name" 421 -H 'Host: evil.example'
page "a rebound name in HTTP/2" 421 -H 'Host: evil.example' --http2-prior-knowledge
page "a page of another site" 403 -H 'Origin: https://evil.example' -H "$json"
page "a sandboxed page" 403 -H 'Origin: null' -H "$json"
page "a form of another page" 403 -H "Origin: https://evil.example"
page "a page of this machine, as text" 200 -H "Origin: http://localhost:3000" -H "Content-Type: text/plain"
page "a form without an origin" 415 -H 'Content-Type: text/plain'
page "our own page" 200 -H "Origin: $url" -H "$json"
page "by its name" 200 -H "Host: localhost:$port"

# HTTP/2 frames: length, type, flags, stream, payload. The head is GET /healthz of http://x in HPACK.
head_block='\202\206\004\010/healthz\001\001x'
rapid=
for i in $(seq 1 2 2999); do
    s=$(printf '\\000\\000\\%03o\\%03o' $((i / 256)) $((i % 256)))
    rapid+="\000\000\017\001\005$s$head_block\000\000\004\003\000$s\000\000\000\010"
done
hello='PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\000\000\000\004\000\000\000\000\000'
# The last bytes are GOAWAY's error code: ENHANCE_YOUR_CALM.
calm() {
    raw "$1" "" "$2"
    [ "$(tail -c 4 "$work/r" | od -An -tx1 | tr -d ' \n')" = 0000000b ] || fail "$1: no GOAWAY with ENHANCE_YOUR_CALM"
}
calm "rapid resets" "$hello$rapid"
more=$(for _ in $(seq 2000); do printf '%s' '\000\000\010\011\000\000\000\000\001\000\003x-a\002bc'; done)
calm "endless CONTINUATION" "$hello\000\000\017\001\001\000\000\000\001$head_block$more"
calm "ping flood" "$hello$(for _ in $(seq 9000); do printf '%s' '\000\000\010\006\000\000\000\000\00012345678'; done)"

# Answers that nobody reads: neither the memory nor the loop is taken by one connection that only asks.
rss_kb() { grep VmRSS: "/proc/$(gateway)/status" | grep -o '[0-9]*'; }
before=$(rss_kb)
exec 3<>"/dev/tcp/127.0.0.1/$port"
yes $'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r' | head -c 4400000 >&3 2>/dev/null & flood=$!
for _ in $(seq 10); do
    curl -s -o /dev/null -m 20 "$url/healthz" || fail "/healthz beside a pipeline that nobody reads"
    sleep 0.05
done
grew=$((($(rss_kb) - before) / 1024))
[ "$grew" -lt 32 ] || fail "one connection that does not read took $grew MB"
kill "$flood" 2>/dev/null
wait "$flood"
exec 3<&-
alive "a pipeline that nobody reads"

# Connections over the limit make those give way that never asked for anything: who asks is served beside them.
fds=()
for _ in $(seq 60); do
    exec {fd}<>"/dev/tcp/127.0.0.1/$port"
    fds+=("$fd")
done
alive "60 connections"
gone=0
for fd in "${fds[@]}"; do
    IFS= read -r -t 0.1 -u "$fd" line
    [ $? -gt 128 ] || gone=$((gone + 1)) # it would wait: the connection is open
done
for fd in "${fds[@]}"; do exec {fd}<&-; done
[ "$gone" -ge 30 ] || fail "$gone of 60 idle connections were closed, the limit is 30"
alive "the connections"

# A worker's socket takes nonsense as calmly.
sock=$(ps -o args= --ppid "$server" | grep -o 'unix:[^ ]*' | head -1)
for junk in 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' '\377\377\377\377\377' 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense and more'; do
    # shellcheck disable=SC2059
    printf "$junk" | curl -s -m 1 --unix-socket "${sock#unix:}" --http0.9 -T - telnet://x >/dev/null 2>&1
    alive "junk on the worker's socket"
done

stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
grep -qE 'AddressSanitizer|runtime error' "$log" && fail "$(grep -E -A5 'AddressSanitizer|runtime error' "$log" | head -20)"
grep -q 'event=worker_exited.*signal=[1-9]' "$log" && fail "a worker died"
echo "$n kinds of nonsense, and it served on; answers that nobody read took $grew MB"
