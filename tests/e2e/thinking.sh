#!/usr/bin/env bash
# Thoughts over HTTP: reasoning_content beside content, whole and streamed; switched by the request; a reply that
# is cut while the model thinks; and a forced call in another family's syntax as OpenAI's tool_calls.
source "$(dirname "$0")/lib.sh"

# A model of random weights: it goes on thinking for as long as it may.
mkdir "$work/thinker" "$work/caller"
for f in config.json model.safetensors tokenizer.json; do
    ln -s "$PWD/tests/data/hf/llama-gqa/$f" "$work/thinker/$f"
    ln -s "$PWD/tests/data/hf/llama-gqa/$f" "$work/caller/$f"
done
cat >"$work/thinker/chat_template.jinja" <<'EOF'
{% for m in messages %}{{ m.reasoning_content }}{{ m.content }}{% endfor %}{% if enable_thinking | default(true) %}<think>{% endif %}
EOF
cat >"$work/caller/chat_template.jinja" <<'EOF'
{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<|tool_call_start|>[{{ c.function.name }}()]<|tool_call_end|>{% endfor %}{% endfor %}{{ tools | length if tools }}
EOF
cat >"$work/c.yaml" <<EOF
models: [{name: thinker, path: $work/thinker}, {name: caller, path: $work/caller}]
EOF
start_shoal "$work/c.yaml"

# ask FIELDS: the answer's body
ask() {
    curl -sS "$url/v1/chat/completions" -H 'content-type: application/json' -d \
        "{\"model\":\"${model:-thinker}\",\"temperature\":0,\"max_tokens\":${max:-8},\"ignore_eos\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]$1}"
}
has() { grep -qF -- "$2" <<<"$1" || fail "no $2 in $1"; }
hasnt() { ! grep -qF -- "$2" <<<"$1" || fail "$2 in $1"; }

body=$(ask '')
has "$body" '"content":"","reasoning_content":"'
has "$body" '"finish_reason":"length"'
has "$body" '"completion_tokens_details":{"reasoning_tokens":8'
again=$(ask '')
has "$again" '"content":"","reasoning_content":"' # from the cache

body=$(ask ',"stream":true')
has "$body" '"delta":{"reasoning_content":"'
hasnt "$body" '"delta":{"content":"'
for off in ',"chat_template_kwargs":{"enable_thinking":false}' ',"reasoning_effort":"none"'; do
    body=$(ask "$off")
    hasnt "$body" reasoning
    hasnt "$body" '"content":""'
done
body=$(model=caller max=200 ask ',"tools":[{"type":"function","function":{"name":"nod","parameters":{"type":"object","properties":{}}}}],"tool_choice":"required"')
has "$body" '"function":{"name":"nod","arguments":"{}"}'
has "$body" '"finish_reason":"tool_calls"'
body=$(ask ',"chat_template_kwargs":{"messages":[]}')
has "$body" '"param":"chat_template_kwargs"'

# Anthropic's form: a block of its own where the request asks for thoughts, whole and streamed; else the model is told
# not to think, and what it thinks all the same is not shown.
message() {
    curl -sS "$url/v1/messages" -H 'content-type: application/json' -d \
        "{\"model\":\"thinker\",\"temperature\":0,\"max_tokens\":8,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]$1}"
}
body=$(message ',"thinking":{"type":"enabled","budget_tokens":1024}')
has "$body" '"content":[{"type":"thinking","thinking":"'
has "$body" '"stop_reason":"max_tokens"'
has "$body" '"output_tokens":8,"output_tokens_details":{"thinking_tokens":8}'
hasnt "$body" '"type":"text"'
body=$(message ',"stream":true,"thinking":{"type":"adaptive"}')
has "$body" '"content_block":{"type":"thinking","thinking":"","signature":""}'
has "$body" '"delta":{"type":"thinking_delta","thinking":"'
hasnt "$body" text_delta
body=$(message ',"thinking":{"type":"enabled","display":"omitted"}')
has "$body" '"content":[{"type":"text","text":""}]'
for off in '' ',"thinking":{"type":"disabled"}'; do
    body=$(message "$off")
    hasnt "$body" thinking
    hasnt "$body" '"text":""'
done

# without a server: the thought comes apart in shoal chat, too
said=$("$SHOAL_BIN" chat "$work/thinker" --json --no-home --no-history -n 8 --temp 0 <<<hi) || fail "chat"
has "$said" '"content":"","reasoning_content":"'

stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"
echo "thoughts come apart, and calls come in the model's own syntax"
