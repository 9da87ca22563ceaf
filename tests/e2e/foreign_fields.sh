#!/usr/bin/env bash
# Fields in which clients of other servers ask for a form of the reply are honoured or refused by name.
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<END
manifest: $PWD/models/models.json
models:
  - {name: home-chat-s, kv_mb: 32}
END
start_shoal "$work/c.yaml"

# ask PATH FIELDS: the reply's body
ask() {
    local prompt='"messages":[{"role":"user","content":"Is the light on?"}]'
    [ "$1" = /v1/completions ] && prompt='"prompt":"Is the light on?"'
    curl -sS "$url$1" -H 'content-type: application/json' \
        -d "{\"model\":\"home-chat-s\",\"temperature\":0,\"max_tokens\":24,$prompt,$2}"
}
# text: what the first choice of the reply on stdin says
text() { python3 -c 'import json,sys; c=json.load(sys.stdin)["choices"][0]; print(c["text"] if "text" in c else c["message"]["content"])'; }

schema='{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"],"additionalProperties":false}'
for path in /v1/chat/completions /v1/completions; do
    for field in "\"response_format\":{\"type\":\"json_object\",\"schema\":$schema}" \
        "\"response_format\":{\"type\":\"json_object\",\"value\":$schema}" "\"json_schema\":$schema" \
        "\"guided_json\":$schema" "\"structured_outputs\":{\"json\":$schema}"; do
        reply=$(ask $path "$field")
        text <<<"$reply" | tr -d ' \n' | grep -qxE '\{"on":(true|false)\}' || fail "$path $field: $reply"
    done
    for field in '"guided_choice":["purple","orange"]' '"structured_outputs":{"choice":["purple","orange"]}'; do
        reply=$(ask $path "$field")
        text <<<"$reply" | grep -qxE 'purple|orange' || fail "$path $field: $reply"
    done
    for name in grammar guided_grammar guided_regex; do
        reply=$(ask $path "\"$name\":\"root ::= x\"")
        grep -q "\"param\":\"$name\"" <<<"$reply" || fail "$path does not name $name: $reply"
    done
done

# The older form of tools: the call comes back in that form, whole and streamed, and so does its result.
functions='"functions":[{"name":"light_on","parameters":{"type":"object","properties":{"room":{"enum":["hall","bath"]}},"required":["room"],"additionalProperties":false}}],"function_call":{"name":"light_on"}'
reply=$(ask /v1/chat/completions "$functions")
grep -q '"function_call":{"name":"light_on","arguments":"{' <<<"$reply" || fail "no function_call: $reply"
grep -q '"finish_reason":"function_call"' <<<"$reply" || fail "not finished by a function_call: $reply"
reply=$(ask /v1/chat/completions "$functions,\"stream\":true")
grep -q '"function_call":{"name":"light_on"' <<<"$reply" || fail "no function_call in the stream: $reply"
grep -q '"finish_reason":"function_call"' <<<"$reply" || fail "the stream is not finished by a function_call: $reply"
grep -q tool_calls <<<"$reply" && fail "the stream has tool_calls: $reply"
reply=$(curl -sS "$url/v1/chat/completions" -d '{"model":"home-chat-s","max_tokens":8,"messages":[{"role":"user","content":"light on"},{"role":"assistant","content":null,"function_call":{"name":"light_on","arguments":"{\"room\":\"hall\"}"}},{"role":"function","name":"light_on","content":"done"}]}')
grep -q '"finish_reason"' <<<"$reply" || fail "a result of a function is not taken: $reply"

# Without a model the only one of the task is meant, and an unknown name is told which there are.
for body in '/v1/chat/completions {"max_tokens":2,"messages":[{"role":"user","content":"hi"}]}' \
    '/v1/completions {"max_tokens":2,"prompt":"hi"}' '/v1/responses {"max_output_tokens":2,"input":"hi"}'; do
    reply=$(curl -sS "$url${body%% *}" -d "${body#* }")
    grep -q '"model":"home-chat-s"' <<<"$reply" || fail "$body does not use the only model: $reply"
done
reply=$(curl -sS "$url/v1/chat/completions" -d '{"max_tokens":2,"stream":true,"messages":[{"role":"user","content":"hi"}]}')
grep -q '"model":"home-chat-s"' <<<"$reply" || fail "a stream does not use the only model: $reply"
reply=$(curl -sS -w '%{http_code}' "$url/v1/chat/completions" -d '{"model":"gpt-3.5-turbo","messages":[{"role":"user","content":"hi"}]}')
grep -q 'home-chat-s.*404$' <<<"$reply" || fail "an unknown name is not told what there is: $reply"

stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
