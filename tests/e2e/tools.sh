#!/usr/bin/env bash
# Calls of functions are held to what is offered, whatever the model: random sets of functions at temperature 2, with the
# home models and with a model of random weights in each family's syntax of calls, judged by ajv.
source "$(dirname "$0")/lib.sh"
npm_clients tools.mjs

# A template that holds a family's sign makes the model write calls as that family does.
models=
{
    echo "manifest: $PWD/models/models.json"
    echo "cache: {mb: 0}"
    echo "models:"
    echo "  - {name: home-chat-s, kv_mb: 32}"
    echo "  - {name: home-chat-m, kv_mb: 48}"
} >"$work/c.yaml"
while read -r name sign; do
    mkdir "$work/$name"
    for f in config.json model.safetensors tokenizer.json; do
        ln -s "$PWD/tests/data/hf/llama-gqa/$f" "$work/$name/$f"
    done
    printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}{{ tools | length if tools }}{# %s #}' \
        "$sign" >"$work/$name/chat_template.jinja"
    echo "  - {name: $name, path: $work/$name}" >>"$work/c.yaml"
    models=$models,$name
done <<'END'
plain nothing
hermes <tool_call>
llama-json <|python_tag|>
llama-pythonic [func_name1(
mistral [TOOL_CALLS]
mistral-args [ARGS]
granite <|tool_call|>
phi-4 <|tool|>
lfm2 <|tool_list_start|>
gemma tool_code
smollm3 <code>
gemma-f <start_function_call>
gemma-4 <|tool_call>
seed <seed:tool_call>
qwen3-coder <parameter=example_parameter_1>
deepseek-v3.2 DSML｜function_calls
deepseek-v4 DSML｜
minimax-m2 <minimax:tool_call>
minimax-m3 ]<]minimax[>[
muse <atem:function_calls>
kimi-k3 <|open|>tools
minicpm <function name=
glm-4.7 </arg_key><arg_value>
glm-4 <arg_key>
deepseek-v3.1 <｜tool▁call▁begin｜>tool_call_name
deepseek-r1 <｜tool▁calls▁begin｜>
kimi-k2 <|tool_calls_section_begin|>
gpt-oss <|channel|>commentary
functionary-3.2 >>>
functionary-3.1 <function=example_function_name>{
cohere <|START_ACTION|>
nemotron-v2 <TOOLCALL>
apriel <tool_calls>[
minimax-m1 <tool_calls>
gigachat-3 function call<|role_sep|>
gigachat-3.1 <|function_call|>
firefunction functools[
apertus <|tools_prefix|>
lfm2.5 List of tools: [
END
start_shoal "$work/c.yaml"
export SHOAL_URL=$url
for who in home-chat-s home-chat-m "${models#,}"; do
    rounds=100
    [ "$who" = "${models#,}" ] && rounds=240
    SHOAL_MODELS=$who timeout 280 node "$modules/tools.mjs" $rounds "${SHOAL_SEED:-1}" >"$work/node.log" 2>&1 ||
        fail "$who, SHOAL_SEED=${SHOAL_SEED:-1}: $(grep -m3 -E 'Error' "$work/node.log" | cut -c1-2000)"
    echo "${who%%,*}: $(cat "$work/node.log")"
done

# ask MODEL TOOLS FIELDS: the answer's body
ask() {
    curl -sS "$url/v1/chat/completions" -H 'content-type: application/json' -d \
        "{\"model\":\"$1\",\"temperature\":0,\"max_tokens\":48,\"messages\":[{\"role\":\"user\",\"content\":\"turn on the hall light\"}],\"tools\":$2$3}"
}
has() { grep -qF -- "$2" <<<"$1" || fail "no $2 in $1"; }
hasnt() { ! grep -qF -- "$2" <<<"$1" || fail "$2 in $1"; }
odd() { echo "[{\"type\":\"function\",\"function\":{\"name\":\"f\",$1\"parameters\":{\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"(?<=x)y\"}}}}}]"; }
for m in home-chat-s plain lfm2; do
    has "$(ask $m "$(odd '')" '')" '"finish_reason"'
    body=$(ask $m "$(odd '"strict":true,')" '')
    has "$body" 'tools/0/function/parameters'
    has "$body" 'without \"strict\": true it is looked at when the call is written'
    has "$(ask $m "$(odd '"strict":false,')" '')" '"finish_reason"'
done
unheld='[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"string","pattern":"(?<=q)zz"}},"required":["a"]}}}]'
body=$(ask home-chat-s "$unheld" ',"tool_choice":"required"') # what is not held is looked at
has "$body" '"schema":{"valid":false'
has "$body" '/tool_calls/0/function/arguments'
body=$(ask gemma-f '[{"type":"function","function":{"name":"f","strict":true,"parameters":{"properties":{"a":{"type":"string","pattern":"^x$"}}}}}]' '')
has "$body" 'tools/0/function/parameters/properties/a'
body=$(ask home-chat-s '[]' '')
hasnt "$body" '"tool_calls"'
body=$(ask home-chat-s '[{"type":"function","function":{"name":"f"}}]' ',"tool_choice":{"type":"function","function":{"name":"g"}}')
has "$body" 'names g, which is not among the tools'
f='{"type":"function","function":{"name":"f","parameters":{"properties":{"room":{"enum":["hall"]},"n":{"const":7}},"required":["room","n"]}}}'
body=$(ask home-chat-s "[$f,$f]" '')
has "$body" 'is already the name of another'
body=$(ask home-chat-s "[$f]" ',"tool_choice":"required","stop":["\"n","hall","name","ool"]')
has "$body" '"finish_reason":"tool_calls"' # stop texts are for text
hasnt "$body" '"content":"<'
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
