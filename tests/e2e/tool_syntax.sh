#!/usr/bin/env bash
# Tool calls in the syntax of other people's chat templates: a reply that is cut within a call shows no part of a
# marker, whole and streamed, over each API; and an unknown syntax is told: in the log, by `models inspect` and in a
# header of each answer.
source "$(dirname "$0")/lib.sh"

# Each row: a name, and how the template writes a call of {{ n }}.
names=()
echo "models:" >"$work/c.yaml"
while IFS=$'\t' read -r name call; do
    names+=("$name")
    mkdir "$work/$name"
    for f in config.json model.safetensors tokenizer.json; do
        ln -s "$PWD/tests/data/hf/llama-gqa/$f" "$work/$name/$f"
    done
    printf '%s' '{{ tools | length if tools }}{% for m in messages %}|{{ m.content }}{% for c in m.tool_calls or [] %}{% set n = c.function.name %}' \
        "$call" '{% endfor %}{% endfor %}|' >"$work/$name/chat_template.jinja"
    echo "  - {name: $name, path: $work/$name}" >>"$work/c.yaml"
done <<'END'
hermes	<tool_call>{"name": "{{ n }}", "arguments": {}}</tool_call>
llama-json	{"name": "{{ n }}", "parameters": {}}
lfm2	<|tool_call_start|>[{{ n }}()]<|tool_call_end|>
mistral	[TOOL_CALLS][{"name": "{{ n }}", "arguments": {}}]
qwen3-coder	<tool_call><function={{ n }}>{{ "\n<parameter=key>\nvalue\n</parameter>\n" }}</function></tool_call>
glm-4.7	<tool_call>{{ n }}<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>
gemma-4	<|tool_call>call:{{ n }}{key:<|"|>value<|"|>}<tool_call|>
kimi-k2	<|tool_calls_section_begin|><|tool_call_begin|>functions.{{ n }}:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>
deepseek-v3.1	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ n }}<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
cohere	<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "{{ n }}", "parameters": {}}]<|END_ACTION|>
unknown	<|mystery|>{{ n }}<|/mystery|>
END
mkdir "$work/plain"
for f in config.json model.safetensors tokenizer.json; do ln -s "$PWD/tests/data/hf/llama-gqa/$f" "$work/plain/$f"; done
printf '%s' '{% for m in messages %}|{{ m.content }}{% endfor %}|' >"$work/plain/chat_template.jinja"
echo "  - {name: plain, path: $work/plain}" >>"$work/c.yaml"
# Mistral's way: an id that is no nine letters is refused.
mkdir "$work/nine"
for f in config.json model.safetensors tokenizer.json; do ln -s "$PWD/tests/data/hf/llama-gqa/$f" "$work/nine/$f"; done
printf '%s' '{{ tools | length if tools }}{% for m in messages %}|{{ m.content }}{% for c in m.tool_calls or [] %}{% if not c.id is defined or c.id | length != 9 %}{{ raise_exception("nine") }}{% endif %}[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}{% if m.role == "tool" and (not m.tool_call_id is defined or m.tool_call_id | length != 9) %}{{ raise_exception("nine") }}{% endif %}{% endfor %}|' \
    >"$work/nine/chat_template.jinja"
echo "  - {name: nine, path: $work/nine}" >>"$work/c.yaml"
start_shoal "$work/c.yaml"

tools='[{"type":"function","function":{"name":"light_on","parameters":{"type":"object","properties":{"room":{"type":"string"},"level":{"type":"integer"}},"required":["room","level"]}}}]'
flat='[{"type":"function","name":"light_on","parameters":{"type":"object","properties":{"room":{"type":"string"},"level":{"type":"integer"}},"required":["room","level"]}}]'
talk='"messages":[{"role":"user","content":"light"}]'
post() { curl -sS -D "$work/head" "$url$1" -H 'content-type: application/json' -d "$2"; }

# clean JSON-or-SSE: no text of an answer, wherever an API puts it, holds a part of a marker
clean() {
    ! grep -oE '"(content|text|delta)":"[^"]*"' <<<"$2" | grep -E '(tool|TOOL_CALLS|START_ACTION|functions\.|call:|function=|light_on|arg_key)' ||
        fail "$1: a marker in a text: $2"
}
for m in "${names[@]}"; do
    for n in 1 2 4 7 12 18 25; do
        for choice in '"required"' '{"type":"function","function":{"name":"light_on"}}'; do
            ask="{\"model\":\"$m\",\"temperature\":1.5,\"seed\":$n,\"max_tokens\":$n,$talk,\"tools\":$tools,\"tool_choice\":$choice"
            clean "$m $n" "$(post /v1/chat/completions "$ask}")"
            clean "$m $n, streamed" "$(post /v1/chat/completions "$ask,\"stream\":true}")"
        done
        clean "$m $n, auto" "$(post /v1/chat/completions "{\"model\":\"$m\",\"temperature\":0,\"max_tokens\":$n,$talk,\"tools\":$tools}")"
        clean "$m $n, responses" "$(post /v1/responses "{\"model\":\"$m\",\"temperature\":1.5,\"max_output_tokens\":$((n < 16 ? 16 : n)),\"input\":\"light\",\"tools\":$flat,\"tool_choice\":\"required\"}")"
        clean "$m $n, ollama" "$(post /api/chat "{\"model\":\"$m\",\"stream\":false,\"options\":{\"num_predict\":$n},$talk,\"tools\":$tools}")"
    done
    ask="{\"model\":\"$m\",\"temperature\":1.5,\"max_tokens\":3,$talk,\"tools\":$tools,\"tool_choice\":\"required\"}"
    grep -q '"finish_reason":"length"' <<<"$(post /v1/chat/completions "$ask")" || fail "$m: a cut reply has another reason"
done
echo "no part of a marker in ${#names[@]} syntaxes"

# The ids that a client was given, or none as Ollama's have it, come back in the next turn.
call='"function":{"name":"light_on","arguments":"{\"room\": \"a\", \"level\": 1}"}'
answer=$(post /v1/chat/completions "{\"model\":\"nine\",\"seed\":1,\"temperature\":0,\"max_tokens\":80,$talk,\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}],\"tool_choice\":\"required\"}")
id=$(grep -oE '"id":"call_[^"]*"' <<<"$answer" | head -1 | cut -d'"' -f4)
[ -n "$id" ] || fail "no call: $answer"
turn() { grep -q "$2" <<<"$3" || fail "the turn with its calls, $1: $3"; }
turn chat '"finish_reason"' "$(post /v1/chat/completions "{\"model\":\"nine\",\"max_tokens\":2,\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"$id\",\"type\":\"function\",$call}]},{\"role\":\"tool\",\"tool_call_id\":\"$id\",\"content\":\"done\"}]}")"
turn responses '"object":"response"' "$(post /v1/responses "{\"model\":\"nine\",\"max_output_tokens\":16,\"input\":[{\"role\":\"user\",\"content\":\"x\"},{\"type\":\"function_call\",\"call_id\":\"$id\",\"name\":\"light_on\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"$id\",\"output\":\"done\"}]}")"
turn ollama '"done":true' "$(post /api/chat '{"model":"nine","stream":false,"options":{"num_predict":2},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"light_on","arguments":{"room":"a"}}}]},{"role":"tool","tool_name":"light_on","content":"done"}]}')"
echo "ids of calls come back over each API"

# header MODEL WANT
header() {
    post /v1/chat/completions "{\"model\":\"$1\",\"max_tokens\":2,$talk,\"tools\":$tools$3}" >"$work/body"
    grep -qi "^x-shoal-tool-syntax: $2"$'\r'"\?$" "$work/head" || fail "$1$3: no x-shoal-tool-syntax: $2 in $(cat "$work/head" "$work/body")"
}
for m in "${names[@]}"; do header "$m" "$m" ''; done
tools='[{"type":"function","function":{"name":"f"}}]' # what is added to a system message has to fit in
header plain 'hermes (added)' ''
header plain 'hermes (added)' ',"stream":true'
post /v1/chat/completions "{\"model\":\"plain\",\"max_tokens\":2,$talk}" >/dev/null
! grep -qi '^x-shoal-tool-syntax' "$work/head" || fail "a request without tools is told of their syntax"
log_has() { grep -q "$1" "$work"/*.log || fail "the log does not say $1"; }
log_has 'event=tool_syntax_unknown .*model=unknown'
for m in unknown plain qwen3-coder; do
    case $m in
        unknown) want='syntax of calls is unknown' ;;
        plain) want='hermes (added)' ;;
        *) want='tool calls as qwen3-coder' ;;
    esac
    "$SHOAL_BIN" models inspect "$work/$m" >"$work/inspect" 2>&1 || fail "inspect $m: $(cat "$work/inspect")"
    grep -q "$want" "$work/inspect" || fail "$m: $(grep template "$work/inspect")"
done
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
