#!/usr/bin/env bash
# Anthropic's Messages API: every refusal in Anthropic's form with one id in header and body, keys in x-api-key, sessions,
# answers that chat has kept, a stream that fails, and the end of the server.
source "$(dirname "$0")/lib.sh"
head=$work/head body=$work/body
sum() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
export SHOAL_STATE=$work/state
shipped >"$work/shoal.yaml"
cat >>"$work/shoal.yaml" <<END
api_keys:
  - {name: root, sha256: $(sum sk-root), admin: true}
  - {name: one, sha256: $(sum sk-one), models: [home-chat-s]}
  - {name: chat, sha256: $(sum sk-chat), endpoints: [chat_completions]}
  - {name: slow, sha256: $(sum sk-slow), limits: {requests_per_minute: 1}}
END
start_shoal "$work/shoal.yaml"

message() { echo "{\"model\":\"${1:-home-chat-s}\",\"max_tokens\":${2:-8},\"temperature\":0,\"messages\":[{\"role\":\"user\",\"content\":\"${3:-hello}\"}]${4:-}}"; }
# ask KEY PATH [CURL OPTIONS...]: the status; headers in $head, the answer in $body.
ask() { curl -s -m 60 -D "$head" -o "$body" -w '%{http_code}' -H "x-api-key: $1" "${@:3}" "$url$2"; }
# refused STATUS TYPE KEY PATH [CURL OPTIONS...]
refused() {
    local status=$1 type=$2 got
    shift 2
    got=$(ask "$@")
    [ "$got" = "$status" ] || fail "$*: $got instead of $status: $(cat "$body")"
    grep -q "^{\"type\":\"error\",\"error\":{\"type\":\"$type\",\"message\":\"[^\"]" "$body" || fail "$*: no $type in $(cat "$body")"
    local id
    id=$(sed -n 's/^request-id: \(.*\)\r$/\1/p' "$head")
    [ -n "$id" ] && grep -q "^x-request-id: $id"$'\r$' "$head" || fail "$*: no request-id: $(cat "$head")"
    grep -q "\"request_id\":\"$id\"}$" "$body" || fail "$*: another id than $id: $(cat "$body")"
}
answered() {
    local pattern=$1
    shift
    [ "$(ask "$@")" = 200 ] || fail "$*: $(cat "$body")"
    grep -q "$pattern" "$body" || fail "$*: no '$pattern' in $(cat "$body")"
}

# Who may ask.
answered '"type":"message"' sk-one /v1/messages -d "$(message)"
answered '"type":"message"' sk-one '/v1/messages?beta=true' -H 'anthropic-version: 2023-06-01' -H 'anthropic-beta: a,b' -d "$(message)"
refused 401 authentication_error sk-nobody /v1/messages -d "$(message)"
refused 401 authentication_error '' /v1/messages/count_tokens -d "$(message)"
refused 403 permission_error sk-one /v1/messages -d "$(message home-chat-m)"
refused 403 permission_error sk-chat /v1/messages -d "$(message)"
answered '"type":"message"' sk-slow /v1/messages -d "$(message)"
refused 429 rate_limit_error sk-slow /v1/messages -d "$(message)"
grep -q '^retry-after: ' "$head" || fail "no retry-after: $(cat "$head")"

# What is wrong with a request.
refused 400 invalid_request_error sk-root /v1/messages -d '{'
refused 400 invalid_request_error sk-root /v1/messages -d '{"messages":[]}'
refused 400 invalid_request_error sk-root /v1/messages/count_tokens -d '{"messages":7}'
refused 404 not_found_error sk-root /v1/messages -d "$(message nobody)"
refused 400 invalid_request_error sk-root /v1/messages/batches -d '{}'
refused 404 not_found_error sk-root /v1/messages/batches/nobody
refused 405 invalid_request_error sk-root /v1/messages
refused 504 timeout_error sk-root /v1/messages -H 'x-shoal-deadline-ms: 0' -d "$(message)"
head -c 3000000 /dev/zero | tr '\0' 'a' >"$work/large"
refused 413 request_too_large sk-root /v1/messages -H 'expect:' -d @"$work/large"
refused 415 invalid_request_error sk-root /v1/messages -H 'content-encoding: br' -d "$(message)"
refused 404 not_found_error sk-root /v1/models/nobody -H 'anthropic-version: 2023-06-01'
refused 404 not_found_error sk-root /v1/skills -H 'anthropic-version: 2023-06-01'
refused 400 invalid_request_error sk-root '/v1/models?limit=0' -H 'anthropic-version: 2023-06-01'
[ "$(ask sk-root /v1/models/nobody)" = 404 ] && grep -q '^{"error":{"message"' "$body" || fail "another form without anthropic-version: $(cat "$body")"
grep -q '^request-id:' "$head" && fail "request-id in OpenAI's form: $(cat "$head")"
answered '"data":\[{"type":"model","id":"home-chat-s",.*"has_more":false,"first_id":"home-chat-s"' sk-one /v1/models -H 'anthropic-version: 2023-06-01'

# What chat has kept answers messages, too.
turned='"role":"user","content":"good night"'
answered finish_reason sk-root /v1/chat/completions -d "{\"model\":\"home-chat-m\",\"max_tokens\":9,\"temperature\":0,\"chat_template_kwargs\":{\"enable_thinking\":false,\"thinking\":false},\"messages\":[{$turned}]}"
answered '"type":"message"' sk-root /v1/messages -d "{\"model\":\"home-chat-m\",\"max_tokens\":9,\"temperature\":0,\"messages\":[{$turned}]}"
grep -q '^x-shoal-cache: hit' "$head" || fail "not kept: $(cat "$head")"

# A session has the turns of both forms.
answered '"type":"message"' sk-root /v1/messages -d "$(message home-chat-s 8 'my name is Ann' ',"session":"s"')"
alone=$(sed 's/.*"input_tokens":\([0-9]*\).*"cache_read_input_tokens":\([0-9]*\).*/\1 + \2/' "$body")
answered '"type":"message"' sk-root /v1/messages -H 'x-shoal-session: s' -d "$(message home-chat-s 8 'and yours?')"
longer=$(sed 's/.*"input_tokens":\([0-9]*\).*"cache_read_input_tokens":\([0-9]*\).*/\1 + \2/' "$body")
[ $((longer)) -gt $((alone)) ] || fail "the session was not read: $longer after $alone"
answered '"content":"my name is Ann"' sk-root /v1/sessions/s
grep -q '"content":"and yours?"' "$body" || fail "the second turn was not kept: $(cat "$body")"
refused 400 invalid_request_error sk-root /v1/messages/count_tokens -H 'x-shoal-session: s' -d "$(message)"

# A stream whose deadline passes ends with an error: with the first deadline that lets it begin.
for ms in 25 50 100 200 400 800 1600 3200; do
    curl -sN -m 60 -H 'x-api-key: sk-root' -H "x-shoal-deadline-ms: $ms" "$url/v1/messages" -o "$work/late" -d '{"model":"home-chat-m","max_tokens":1900,"stream":true,"temperature":1,"seed":5,"tools":[{"name":"say","input_schema":{"type":"object","properties":{"text":{"type":"string","minLength":1900}},"required":["text"]}}],"tool_choice":{"type":"any"},"messages":[{"role":"user","content":"tell me everything"}]}'
    grep -q '^event: message_start' "$work/late" && break
done
grep -q '^event: message_start' "$work/late" || fail "no stream: $(cat "$work/late")"
tail -3 "$work/late" | grep -q '^event: error' || fail "the stream did not fail: $(tail -3 "$work/late")"
tail -2 "$work/late" | grep -q '^data: {"type":"error","error":{"type":"timeout_error",' || fail "another error: $(tail -2 "$work/late")"
# A server that ends says so to those who ask, and finishes what runs.
python3 - "$port" "$server" <<'P' || fail "while the server ends"
import http.client, json, os, signal, sys, time
port, server = int(sys.argv[1]), int(sys.argv[2])
key = {"x-api-key": "sk-root", "content-type": "application/json"}
ask = lambda **more: json.dumps({"model": "home-chat-s", "max_tokens": 900, "messages": [{"role": "user", "content": "hello"}], **more})
waits = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
waits.request("GET", "/v1/models", headers=key)
waits.getresponse().read()
long = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
tool = {"name": "say", "input_schema": {"type": "object", "properties": {"text": {"type": "string", "minLength": 1900}}, "required": ["text"]}}
long.request("POST", "/v1/messages", ask(stream=True, tools=[tool], tool_choice={"type": "any"}), {**key, "cache-control": "no-store"})
stream = long.getresponse()
stream.readline()
waits.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: sk-root\r\n")  # its head is still coming
os.kill(server, signal.SIGTERM)
time.sleep(0.3)
text = ask().encode()
waits.send(b"content-length: %d\r\n\r\n%s" % (len(text), text))
said = waits.sock.recv(65536).decode()
assert said.startswith("HTTP/1.1 503 ") and '"type":"overloaded_error"' in said and '"error_code":"draining"' in said, said
assert b"message_stop" in stream.read().splitlines()[-2], "the stream that ran was cut"
P
wait "$server"
stopped=$?
server=
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
echo "refusals, keys, sessions, kept answers, a late stream and the end in Anthropic's form"
