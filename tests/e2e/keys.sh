#!/usr/bin/env bash
# Keys: who may come in by which header, what a key may name and ask, when it ends, and how much it may take.
source "$(dirname "$0")/lib.sh"
head=$work/head body=$work/body
sum() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
soon=$(date -u -d '+3 seconds' +%Y-%m-%dT%H:%M:%SZ)

{
    shipped | sed "s,^deadline_ms:.*,deadline_ms: 300000,"
    cat <<END
api_keys:
  - sha256:$(sum sk-root)
  - {name: tv, sha256: $(sum sk-tv), models: [home, auto, 'home-emb*']}
  - {name: chat, sha256: $(sum sk-chat), endpoints: [chat_completions, ollama_chat, /v1/models]}
  - {name: old, sha256: $(sum sk-old), expires: 2026-01-01}
  - {name: brief, sha256: $(sum sk-brief), expires: $soon}
  - {name: slow, sha256: $(sum sk-slow), limits: {requests_per_minute: 3}}
  - {name: thrifty, sha256: $(sum sk-thrifty), limits: {tokens_per_minute: 12}}
  - {name: single, sha256: $(sum sk-single), limits: {concurrent: 1}}
  - {name: ollama, sha256: $(sum sk-ollama), models: [home-chat-s], limits: {requests_per_minute: 2}}
  - {name: node, sha256: $(sum sk-node), limits: {requests_per_minute: 600}}
  - {name: twice, sha256: $(sum sk-twice), limits: {requests_per_minute: 2}}
  - {name: scraper, sha256: $(sum sk-scraper), admin: true, endpoints: [metrics]}
END
} >"$work/shoal.yaml"
start_shoal "$work/shoal.yaml"

# ask KEY PATH [CURL OPTIONS...]: the status; headers in $head, the answer in $body.
ask() {
    local key=$1 path=$2
    shift 2
    curl -s -m 60 -D "$head" -o "$body" -w '%{http_code}' -H "authorization: Bearer $key" "$@" "$url$path"
}
# expect STATUS PATTERN KEY PATH [CURL OPTIONS...]
expect() {
    local status=$1 pattern=$2 got
    shift 2
    got=$(ask "$@")
    [ "$got" = "$status" ] || fail "$*: $got instead of $status: $(cat "$body")"
    grep -qE "$pattern" "$body" || fail "$*: no '$pattern' in $(cat "$body")"
}
# header NAME VALUE: of the last answer.
header() { grep -qiE "^$1: $2"$'\r$' "$head" || fail "no $1: $2 in $(cat "$head")"; }
chat() { echo "{\"model\":\"$1\",\"max_tokens\":${2:-8},\"temperature\":0,\"messages\":[{\"role\":\"user\",\"content\":\"${3:-turn on the fan}\"}]}"; }

# A stream that runs when its key ends; see below.
curl -sN -m 280 -H 'x-api-key: sk-brief' "$url/v1/chat/completions" -o "$work/brief" \
    -d '{"model":"home-chat-m","stream":true,"temperature":1,"seed":3,"ignore_eos":true,"max_tokens":1500,"messages":[{"role":"user","content":"tell me everything"}]}' &
brief=$!

# Whichever header a client knows; a proxy's own word in the first does not hide the second.
expect 200 '"object":"list"' sk-root /v1/models
for h in 'x-api-key: sk-root' 'api-key: sk-root'; do
    [ "$(curl -s -o "$body" -w '%{http_code}' -H "$h" "$url/v1/models")" = 200 ] || fail "$h: $(cat "$body")"
    [ "$(curl -s -o "$body" -w '%{http_code}' -H 'authorization: Basic YTpi' -H "$h" "$url/v1/models")" = 200 ] || fail "Basic and $h"
done
[ "$(curl -s -o "$body" -w '%{http_code}' "$url/v1/models")" = 401 ] || fail "no key"
grep -q 'a valid API key is needed' "$body" || fail "no key: $(cat "$body")"
expect 401 'this API key is none of this server' sk-nobody /v1/models
expect 401 'invalid_api_key' sk-nobody /v1/models -H 'x-api-key: sk-root'
expect 401 'API key old ended at 2026-01-01.*"expired_api_key"' sk-old /v1/models
echo "three headers, one key"

# Requests without a valid key are counted and push no others out of the last requests.
for path in /v1/models /v1/nothing /v1/chat/completions; do
    for who in nobody tv; do ask sk-$who $path -H "x-request-id: of-$who" >/dev/null; done
done
expect 200 '"id":"of-tv"' sk-root /v1/requests
grep -q 'of-nobody' "$body" && fail "requests without a valid key stand among the last requests: $(cat "$body")"
expect 200 'shoal_errors_total.endpoint="models",code="invalid_api_key"' sk-root /metrics
echo "requests without a valid key are kept out"

# Over gRPC the key comes first: without one nothing is unpacked, and from those who have one no more than over
# HTTP. grpc KEY CALL FILE: the status that comes of one packed message, and its words.
grpc() {
    local n
    n=$(stat -c %s "$3")
    { printf '\x01'; printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((n >> 24)) $((n >> 16 & 255)) $((n >> 8 & 255)) $((n & 255)))"; cat "$3"; } |
        curl -s -m 60 --http2-prior-knowledge -o "$body" -D - -H 'content-type: application/grpc' -H 'te: trailers' \
            -H 'grpc-encoding: gzip' -H "authorization: Bearer $1" --data-binary @- "$url/$2" |
        tr -d '\r' | sed -n 's/^grpc-\(status\|message\): //p' | tr '\n' ' '
}
{ printf '\x0a\x80\x80\xc0\x02'; seq -f %0100.0f 60000 | head -c 5242880; } 2>/dev/null | gzip >"$work/five"
echo "no gzip at all" >"$work/damaged"
got=$(grpc sk-nobody shoal.v1.Shoal/Chat "$work/damaged")
[[ $got == 16\ * ]] || fail "a damaged message without a key: $got"
got=$(grpc sk-root shoal.v1.Shoal/Chat "$work/damaged")
[[ $got == 13\ *malformed* ]] || fail "a damaged message: $got"
got=$(grpc sk-root shoal.v1.Shoal/Chat "$work/five")
[[ $got == 8\ *'too large'* ]] || fail "five megabytes of JSON: $got"
got=$(grpc sk-root shoal.v1.Shoal/Vad "$work/five")
[[ $got == 3\ * ]] || fail "five megabytes of sound: $got"
got=$(grpc sk-nobody grpc.health.v1.Health/Check "$work/five")
[[ $got == 8\ *'too large'* ]] || fail "five megabytes without a key: $got"
echo "keys first over gRPC"

# What it may name, and what stands behind that name is not asked.
expect 200 '"choices"' sk-tv /v1/chat/completions -d "$(chat auto)"
grep -qi '^x-shoal-route: auto; home-chat' "$head" || fail "no route: $(cat "$head")"
expect 200 '"trace"' sk-tv /v1/process -d '{"pipeline":"home","input":"turn on the kitchen light"}'
expect 200 '"embedding"' sk-tv /v1/embeddings -d '{"model":"home-embed","input":"hello"}'
expect 403 "API key tv may not use 'home-chat-m'.*\"param\":\"model\",\"code\":\"model_not_found\"" sk-tv /v1/chat/completions -d "$(chat home-chat-m)"
expect 403 "may not use 'nothing-such'" sk-tv /v1/chat/completions -d "$(chat nothing-such)"
expect 403 "may not use 'home-cascade'" sk-tv /v1/route -d '{"route":"home-cascade","input":"x"}'
expect 403 "may not use 'home-chat-m'" sk-tv /v1/models/home-chat-m
expect 403 "may not use 'home-chat-m'" sk-tv /api/chat -d "$(chat home-chat-m)"
expect 403 "may not use 'home-slots'" sk-tv /v2/models/home-slots
expect 403 "may not use 'home-slots'" sk-tv /v2/models/home-slots/infer -d '{"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":["hi"]}]}'
expect 403 "may not use" sk-tv /v1/responses -d '{"model":"home-vote","input":"x"}'
expect 200 'home-embed' sk-tv /v1/models
[ "$(grep -o '"id":"[^"]*"' "$body" | sort | tr '\n' ' ')" = '"id":"auto" "id":"home" "id":"home-embed" ' ] || fail "listed: $(cat "$body")"
expect 200 'home-embed' sk-tv /api/tags
grep -q 'home-chat-m' "$body" && fail "Ollama's list has more: $(cat "$body")"
expect 200 '^.[^}]*"id":"home"|"name":"home"' sk-tv /v1/pipelines
expect 200 '"data":\[\]' sk-ollama /v1/pipelines
expect 403 "may not use 'home-chat-m'" sk-tv /v1/completions -d '{"model":"home-chat-m:latest","prompt":"a","max_tokens":1}'
expect 200 . sk-tv /v1/embeddings -d '{"model":"home-embed:latest","input":"a"}'
# and where it may ask it
expect 200 '"choices"' sk-chat /v1/chat/completions -d "$(chat home-chat-s)"
expect 200 '"message"' sk-chat /api/chat -d "$(chat home-chat-s | sed 's/{/{"stream":false,/')"
expect 403 'API key chat may not ask /v1/embeddings \(embeddings\)' sk-chat /v1/embeddings -d '{"input":"x"}'
expect 403 'may not ask /api/generate' sk-chat /api/generate -d '{"model":"home-chat-s","prompt":"x"}'
echo "names and endpoints"

# What shows or changes the server.
for path in /metrics /v1/status /v1/cache /v1/nodes /v1/requests; do
    [ $path = /v1/nodes ] || expect 200 . sk-root $path
    expect 403 'insufficient_permissions' sk-tv $path
done
expect 403 'admin: true' sk-tv /v1/cache -X DELETE
expect 403 'admin: true' sk-tv /v1/events
expect 403 'admin: true' sk-tv /v1/models/unload -d '{"model":"home-embed"}'
expect 403 'admin: true' sk-tv /v2/repository/models/home-embed/unload -X POST
expect 403 'admin: true' sk-tv /v1/models/home-embed -X DELETE
expect 403 'admin: true' sk-tv /v1/nodes/x/drain -X POST -d '{}'
expect 200 'shoal_requests_total' sk-scraper /metrics
expect 403 'endpoints' sk-scraper /v1/cache
expect 200 . sk-root /healthz
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/metrics")" = 401 ] || fail "/metrics without a key"
echo "admin"

# Rates, with the headers that OpenAI's clients read. Cached answers are requests and no tokens.
expect 200 . sk-slow /v1/chat/completions -d "$(chat home-chat-s)"
header x-ratelimit-limit-requests 3
header x-ratelimit-remaining-requests 2
header x-ratelimit-reset-requests '(20|1[0-9])s'
grep -qi x-ratelimit-limit-tokens "$head" && fail "limits that are none: $(cat "$head")"
expect 200 . sk-slow /v1/models # no work, no request
header x-ratelimit-remaining-requests 2
expect 200 . sk-slow /v1/chat/completions -d "$(chat home-chat-s)"
header x-shoal-cache hit
expect 400 . sk-slow /v1/chat/completions -d '{'
expect 429 '"message":"Rate limit reached for the API key slow on requests per min. Limit: 3. Please try again in [0-9.]+s.","type":"requests","param":null,"code":"rate_limit_exceeded"' \
    sk-slow /v1/chat/completions -d "$(chat home-chat-s)"
header retry-after '([1-9]|1[0-9]|20)'
header x-ratelimit-remaining-requests 0
expect 200 . sk-thrifty /v1/chat/completions -d "$(chat home-chat-s 30 'why is the sky blue')" -H 'cache-control: no-store'
header x-ratelimit-limit-tokens 12
expect 429 'on tokens per min. Limit: 12\..*"type":"tokens"' sk-thrifty /v1/chat/completions -d "$(chat home-chat-s)"
header x-ratelimit-remaining-tokens 0
# Ollama's request and ours behind it are one.
lines=$(chat home-chat-s | sed 's/{/{"stream":false,/')
expect 200 . sk-ollama /api/chat -d "$lines"
header x-ratelimit-remaining-requests 1
expect 200 . sk-ollama /api/chat -d "$lines"
expect 429 'Rate limit reached for the API key ollama' sk-ollama /api/chat -d "$lines"
header retry-after '[0-9]+'
echo "rates"

# A stream that is cut counts what was made; one at a time is one at a time.
for _ in $(seq 10); do # in the middle of it, unless it was quicker
    rm -f "$work/stream"
    curl -sN -m 60 -H 'authorization: Bearer sk-single' -H 'cache-control: no-store' "$url/v1/chat/completions" -o "$work/stream" \
        -d "$(chat home-chat-m 1900 'tell me a long story' | sed 's/{/{"stream":true,"ignore_eos":true,/')" &
    stream=$!
    for _ in $(seq 1000); do
        [ -s "$work/stream" ] && break
        sleep 0.02
    done
    got=$(ask sk-single /v1/chat/completions -d "$(chat home-chat-s)")
    [ "$got" = 200 ] || break
    wait $stream
    grep -q DONE "$work/stream" || fail "two at once: $(cat "$body")"
done
[ "$got" = 429 ] && grep -q 'requests at once. Limit: 1' "$body" || fail "two at once: $got $(cat "$body")"
kill $stream 2>/dev/null
wait $stream 2>/dev/null
for _ in $(seq 400); do
    got=$(ask sk-single /v1/chat/completions -d "$(chat home-chat-s)")
    [ "$got" = 200 ] && break
    sleep 0.05
done
[ "$got" = 200 ] || fail "its place never came free: $(cat "$body")"
echo "one at a time"

# Clients of npm, where they can be had.
modules=build/node
if (trap - EXIT && npm_clients keys.mjs) >"$work/npm"; then
    (cd $modules && SHOAL_URL=$url timeout 120 node keys.mjs) >"$work/node" 2>&1 || fail "a client: $(tail -20 "$work/node")"
    cat "$work/node"
else
    echo "npm's clients were not tried: $(cat "$work/npm")"
fi

# A key that ends while its stream runs ends no stream.
while [ "$(date -u +%s)" -lt "$(date -u -d "$soon" +%s)" ]; do sleep 0.2; done
expect 401 'API key brief ended at' sk-brief /v1/models
wait $brief || fail "the stream of a key that ended broke"
grep -q 'data: \[DONE\]' "$work/brief" || grep -q 'API key brief ended' "$work/brief" || fail "a key that ended cut its stream: $(tail -c 300 "$work/brief")"
grep -q 'sk-' "$log" && fail "a key stands in the log"
grep -qE 'event=request .*key=slow' "$log" || grep -qE 'request .*key=slow' "$log" || fail "the log does not name the key: $(grep request "$log" | head -3)"

# The file's mistakes, with their lines.
refused() { # CONFIG PATTERN
    { shipped; echo "$1"; } >"$work/bad.yaml"
    "$SHOAL_BIN" serve -c "$work/bad.yaml" --port 0 >"$work/out" 2>&1 && fail "taken: $1"
    grep -qE "$2" "$work/out" || fail "$1: $(cat "$work/out")"
}
refused "api_keys: [{name: a, sha256: $(sum a), endpoints: [chat_completion]}]" \
    "bad.yaml:[0-9]+: api_keys\[0\].endpoints\[0\]: there is no endpoint 'chat_completion'; did you mean 'chat_completions'"
refused "api_keys: [{name: a, sha256: sk-in-clear}]" 'bad.yaml:[0-9]+: api_keys\[0\].sha256: must be'
grep -q 'sk-in-clear' "$work/out" && fail "a key is repeated: $(cat "$work/out")"

# /metrics may be left open, or to any key.
{ shipped; echo "api_keys: [{name: a, sha256: $(sum sk-a)}]"; echo "metrics: {key: none}"; } >"$work/open.yaml"
stop_shoal
start_shoal "$work/open.yaml"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/metrics")" = 200 ] || fail "metrics.key: none"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/status")" = 401 ] || fail "the rest is open, too"
stop_shoal
sed -i 's/key: none/key: any/' "$work/open.yaml"
start_shoal "$work/open.yaml"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/metrics")" = 401 ] || fail "metrics.key: any without one"
expect 200 shoal_build_info sk-a /metrics
expect 403 . sk-a /v1/status
stop_shoal

# The file is read again: how long a body may be, gRPC's too.
hup() {
    local before
    before=$(grep -cE 'event=(reloaded|reload_refused)' "$log")
    kill -HUP "$server"
    for _ in $(seq 400); do
        [ "$(grep -cE 'event=(reloaded|reload_refused)' "$log")" -gt "$before" ] && return
        sleep 0.02
    done
    fail "a SIGHUP was not heard"
}
start_shoal "$work/open.yaml"
got=$(grpc sk-a shoal.v1.Shoal/Chat "$work/five")
[[ $got == 8\ *'too large'* ]] || fail "five megabytes of JSON: $got"
sed -i "s,max_body_bytes:.*,max_body_bytes: 6291456," "$work/open.yaml"
hup
got=$(grpc sk-a shoal.v1.Shoal/Chat "$work/five")
[[ $got == 3\ * ]] || fail "five megabytes of JSON, which are allowed now: $got"

# Whose key is taken away reads no more of what goes on; whose stays reads on.
readers=() n=0
for key in boss stays; do
    sed -i "s/^api_keys: \[/&{name: $key, admin: true, sha256: $(sum sk-$key)}, /" "$work/open.yaml"
done
hup
for of in boss/v1/events boss/v1/logs?follow=true stays/v1/events stays/v1/logs?follow=true; do
    curl -sN -m 60 -H "x-api-key: sk-${of%%/*}" "$url/${of#*/}" -o "$work/reader$n" &
    readers+=($!)
    for _ in $(seq 400); do
        [ -s "$work/reader$n" ] && break
        sleep 0.02
    done
    [ -s "$work/reader$n" ] || fail "$of says nothing"
    n=$((n + 1))
done
sed -i "s/$(sum sk-boss)/$(sum sk-another)/" "$work/open.yaml"
hup
for n in 0 1; do
    wait "${readers[n]}" || fail "a key that is gone reads on: $(tail -c 300 "$work/reader$n")"
    grep -q '^data: {"error":.*invalid_api_key' "$work/reader$n" || fail "no reason: $(tail -c 300 "$work/reader$n")"
done
for n in 2 3; do
    kill "${readers[n]}" || fail "a key that stays reads no more: $(tail -c 300 "$work/reader$n")"
    wait "${readers[n]}"
done

# An old answer is made anew for a key that may ask in one form alone, too, and not in the one that is asked behind it.
sed -i -e "s/^api_keys: \[/&{name: alien, sha256: $(sum sk-alien), endpoints: [ollama_chat]}, /" \
    -e 's/^  ttl_s: .*/  ttl_s: 1\n  stale_s: 3600/' "$work/open.yaml"
hup
lines='{"model":"home-chat-s","stream":false,"options":{"temperature":0,"num_predict":8},"messages":[{"role":"user","content":"turn on the fan"}]}'
expect 200 '"message"' sk-alien /api/chat -d "$lines"
sleep 1.2
expect 200 '"message"' sk-alien /api/chat -d "$lines"
header x-shoal-cache stale
for _ in $(seq 400); do
    grep -q 'status=200 .*key=alien.*background=refresh' "$log" && break
    sleep 0.05
done
grep -q 'status=200 .*key=alien.*background=refresh' "$log" || fail "not made anew: $(grep background=refresh "$log")"
stop_shoal
echo "all keys checked"
