#!/bin/sh
# Ask a served cluster one thing and print what it answers, without what differs from time to time:
#
#     tests/fail/ask.sh KIND URL [CURL-OPTIONS ...]
#
# "closed" stands for a connection that ended without a whole answer; no answer in time is exit status 3.
kind=$1 url=$2
shift 2
patience=60 # seconds: what takes longer hangs, on a busy machine too
light='"messages":[{"role":"user","content":"Turn on the kitchen light."}],"temperature":0,"max_tokens":12'
system='"messages":[{"role":"system","content":"You are Shoal."},{"role":"user","content":"a"}],"temperature":0,"max_tokens":8'
tool='"tools":[{"type":"function","function":{"name":"light","description":"a light","parameters":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}}}]'
schema='"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}},"required":["a","b"],"additionalProperties":false}}}'
functions='"functions":[{"name":"light","parameters":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}}],"function_call":{"name":"light"},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"function_call":{"name":"light","arguments":"{}"}},{"role":"function","name":"light","content":"b"},{"role":"user","content":"c"}]'
case $kind in
chat) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",$light,\"logprobs\":true,\"top_logprobs\":2}" ;;
aliased) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"gpt-4o-mini\",$light}" ;;
aliased_ollama) set -- "$@" "$url/api/embed" -d '{"model":"llama3:latest","input":"turn on"}' ;;
alias) set -- "$@" "$url/v1/models/gpt-4o-mini" ;;
routed) # by a rule that asks no model: a link that lacks the memory for the question would change the route
    set -- "$@" -H 'x-shoal-latency: realtime' "$url/v1/chat/completions" -d "{\"model\":\"auto\",$light}" ;;
verified) # a rule answers, whether the model does or not
    home='"messages":[{"role":"system","content":"lock.a '"'Front Door Lock'"' = locked\nfan.b '"'Fan'"' = on"},{"role":"user","content":"unlock the front door, fan off"}]'
    set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-verified\",$home,\"temperature\":0,\"max_tokens\":12}" ;;
cached) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",$light,\"seed\":5}" ;;
stream) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",$light,\"stream\":true,\"stream_options\":{\"include_usage\":true}}" ;;
tools) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",$light,$tool,\"tool_choice\":\"required\"}" ;;
functions) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",$functions,\"temperature\":0,\"max_tokens\":24}" ;;
choice) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",$light,\"structured_outputs\":{\"choice\":[\"purple\",\"orange\"]}}" ;;
guided) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",$light,\"guided_json\":\"{\\\"type\\\":\\\"object\\\",\\\"properties\\\":{\\\"on\\\":{\\\"type\\\":\\\"boolean\\\"}},\\\"required\\\":[\\\"on\\\"]}\"}" ;;
schema) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",$system,$schema}" ;;
completions) set -- "$@" "$url/v1/completions" -d '{"model":"home-chat-s","prompt":["Turn on","Turn off"],"echo":true,"temperature":0,"max_tokens":6}' ;;
llama) set -- "$@" "$url/completion" -d '{"model":"home-chat-s","prompt":"Turn on","temperature":0,"n_predict":6,"n_probs":2,"return_tokens":true,"response_fields":["content","tokens","stop_type","generation_settings/seed"]}' ;;
mixed) set -- "$@" "$url/completion" -d '{"model":"home-chat-s","prompt":[[90,"Turn on"],"Turn off"],"temperature":0,"n_predict":4,"response_fields":["content"]}' ;;
tokens) set -- "$@" "$url/tokenize" -d '{"model":"home-chat-s","content":"Turn on the light","with_pieces":true}' ;;
words) set -- "$@" "$url/detokenize" -d '{"model":"home-chat-s","tokens":[90,91,92,300]}' ;;
prompt) set -- "$@" "$url/apply-template" -d "{\"model\":\"home-chat-s\",$light,$tool}" ;;
message | message_stream)
    set -- "$@" "$url/v1/messages" -d '{"model":"home-chat-s","system":[{"type":"text","text":"You are Shoal."}],"max_tokens":24,"temperature":0,"stream":'"$([ "$kind" = message ] && echo false || echo true)"',"stop_sequences":["~~"],"thinking":{"type":"adaptive"},"tools":[{"name":"light","input_schema":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}}],"tool_choice":{"type":"any"},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"b"},{"type":"tool_use","id":"t","name":"light","input":{"on":true}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"c"}]},{"type":"text","text":"d"}]}]}' ;;
message_count) set -- "$@" "$url/v1/messages/count_tokens" -d '{"model":"home-chat-s","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}' ;;
message_models) set -- "$@" -H 'anthropic-version: 2023-06-01' "$url/v1/models?limit=2&after_id=home-intent" ;;
props) set -- "$@" "$url/props?model=home-chat-s" ;;
tensors) set -- "$@" "$url/v2/models/home-embed/infer" -d '{"inputs":[{"name":"text","datatype":"BYTES","shape":[2],"data":["turn on","turn off"]}]}' ;;
tensor_model) set -- "$@" "$url/v2/models/home-intent" ;;
embeddings) set -- "$@" "$url/v1/embeddings" -d '{"model":"home-embed","input":["turn on","turn off"]}' ;;
classify) set -- "$@" "$url/v1/classify" -d '{"model":"home-intent","input":["turn on the light","play music"]}' ;;
tag) set -- "$@" "$url/v1/tag" -d '{"model":"home-slots","input":"turn on the kitchen light"}' ;;
transcribe | transcript) form='X-Form: yes' # curl names the type of a form
    set -- "$@" -F file=@tests/data/speech/wav/08-lights-on.wav "$url/v1/audio/transcriptions"
    [ "$kind" = transcribe ] && set -- "$@" -F response_format=verbose_json || set -- "$@" -F stream=true ;;
process) set -- "$@" "$url/v1/process" -d '{"input":"turn on the kitchen light"}' ;;
documents) set -- "$@" "$url/v1/collections/home/documents" -d "{\"source\":\"a\",\"text\":\"# Lamp\\nIt is $(date +%s%N).\",\"type\":\"markdown\",\"metadata\":{\"k\":1}}" ;;
search) set -- "$@" "$url/v1/collections/home/search" -d '{"query":"bleed the radiators","filters":{"k":1}}' ;;
answer) set -- "$@" "$url/v1/collections/home/answer" -d '{"question":"when are radiators bled?","filters":{"k":1}}' ;;
collections) set -- "$@" "$url/v1/collections" ;;
respond) set -- "$@" "$url/v1/responses" -d '{"model":"home-chat-s","input":"Turn on the kitchen light.","temperature":0,"max_output_tokens":8}' ;;
goes_on) set -- "$@" "$url/v1/responses" -d '{"model":"home-chat-s","input":"And off.","temperature":0,"max_output_tokens":8,"previous_response_id":"'"$PREVIOUS"'","stream":true}' ;;
in_session) set -- "$@" "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",$light,\"session\":\"s$(date +%s%N)\"}" ;;
session) set -- "$@" "$url/v1/sessions/kept" ;;
models | metrics) set -- "$@" "$url/$([ "$kind" = models ] && echo v1/)$kind" ;;
readyz) set -- "$@" "$url/readyz" ;;
requests | pipelines) set -- "$@" "$url/v1/$kind" ;;
grpc_*) # its message in a frame: octal, and its length is below 256
    case $kind in
    grpc_classify) call=shoal.v1.Shoal/Classify say='\n\013home-intent\022\021turn on the light' n=040 ;;
    grpc_chat) call=shoal.v1.Shoal/ChatStream n=047 \
        say='\n\013home-chat-s\022\015\n\004user\022\005hello\040\010\051\000\000\000\000\000\000\000\000' ;;
    grpc_process) call=shoal.v1.Shoal/ProcessStream say='\022\031turn on the kitchen light' n=033 ;;
    grpc_infer) call=inference.GRPCInferenceService/ModelInfer n=066 \
        say='\n\013home-intent\052\020\n\004text\022\005BYTES\032\001\001\072\025\021\000\000\000turn on the light' ;;
    grpc_infer_stream) call=inference.GRPCInferenceService/ModelStreamInfer n=071 \
        say='\n\013home-intent\032\0017\052\020\n\004text\022\005BYTES\032\001\001\072\025\021\000\000\000turn on the light' ;;
    grpc_infer_pieces) # streamed, with an empty last answer
        call=inference.GRPCInferenceService/ModelStreamInfer n=157
        say='\n\013home-chat-s\032\0017\042\020\n\012max_tokens\022\002\020\004'
        say=$say'\042\050\n\042triton_enable_empty_final_response\022\002\010\001'
        say=$say'\052\026\n\012text_input\022\005BYTES\032\001\001\072\011\005\000\000\000hello' ;;
    grpc_reflect) call=grpc.reflection.v1.ServerReflection/ServerReflectionInfo say='\042\016shoal.v1.Shoal' n=020 ;;
    grpc_health) call=grpc.health.v1.Health/Check say= n=000 ;;
    grpc_watch) call=grpc.health.v1.Health/Watch say= n=000 for=300m ;; # it never ends by itself
    esac
    at=$(mktemp -d)
    printf '\000\000\000\000\'$n"$say" >"$at/ask"
    curl -sN -m $patience --http2-prior-knowledge -D "$at/head" -o "$at/body" -H 'Content-Type: application/grpc' -H 'TE: trailers' \
        -H 'Cache-Control: no-cache' -H "Grpc-Timeout: ${for:-${patience}S}" --data-binary "@$at/ask" "$url/$call" 2>/dev/null
    rc=$? status=$(sed -n 's/^grpc-status: *\([0-9]*\).*/\1/p' "$at/head" 2>/dev/null)
    case $kind:${status:-none} in
    *:8 | *:13 | *:14) echo "status 500" ;;
    grpc_watch:*) echo "grpc ${status:-none} $([ -s "$at/body" ] && echo something)" ;;
    grpc_process:*) # each event has its name
        grep -qa 'out of memory' "$at/body" && echo '"error":"out of memory"'
        echo "grpc ${status:-none} $(LC_ALL=C grep -acP '^\x05stage|^\x06answer' "$at/body") events" ;;
    grpc_infer_stream:* | grpc_infer_pieces:*) # errors are told in the stream; how it is cut hangs on the time
        grep -qa 'out of memory\|not understood\|could not be answered\|request failed' "$at/body" && echo '"error":"out of memory"'
        echo "grpc ${status:-none} $(LC_ALL=C grep -acP 'triton_final_response\x12\x02\x08\x01' "$at/body") last" ;;
    grpc_chat:* | grpc_health:*) echo "grpc ${status:-none}" ;; # what it says hangs on the time
    *) echo "grpc ${status:-none} $(cksum <"$at/body")" ;;
    esac
    rm -rf "$at"
    [ -n "$status" ] && exit 0
    [ $rc -eq 28 ] && echo "no answer in $patience s" && exit 3
    [ $rc -eq 7 ] && echo "nobody listens" && exit 3
    echo closed
    exit 0
    ;;
esac
if [ "$kind" = events ]; then # it never ends: its first event, or what is said instead
    curl -sN -m $patience -w '\nstatus %{http_code}\n' "$@" "$url/v1/events" 2>/dev/null | grep -m 1 -oE '^event: status|^status [1-9].*' || echo closed
    exit 0
fi
[ "$kind" = cached ] || set -- -H 'Cache-Control: no-cache' "$@"
body=$(curl -sN -m $patience -w '\nstatus %{http_code}\n' -H "${form:-Content-Type: application/json}" "$@" 2>/dev/null)
case $? in
0) ;;
28) echo "no answer in $patience s: $body"; exit 3 ;;
7) echo "nobody listens"; exit 3 ;;
*) echo closed; exit 0 ;;
esac
if [ "$kind" = transcript ]; then
    printf '%s\n' "$body" | grep -oE '"text":".*"|"error":.*|^status .*'
    exit 0
fi
# How a stream is cut into events is a matter of time; what they say is not.
if [ "$kind" = goes_on ]; then # its memory decides how the answer is cut, and ids differ
    printf '%s\n' "$body" | grep -oE '"type":"response.(completed|incomplete)"|"output_tokens":[0-9]+|"type":"output_text","text":"[^"]*"|"error":\{.*|^status .*' | tail -3
    exit 0
fi
if [ "$kind" = verified ]; then # who wrote it is told, and may differ
    printf '%s\n' "$body" | grep -oE '"message":\{"role":"assistant","content":"[^"]*"|"name":"[a-z_.]*"|"arguments":"\{[^}]*\}|"finish_reason":"[a-z_]*"|"error":\{.*|^status .*'
    exit 0
fi
if [ "$kind" = stream ]; then
    printf '%s\n' "$body" | sed -nE 's/.*"delta":\{"content":"(([^"\\]|\\.)*)".*/\1/p' | tr -d '\n'
    echo
    printf '%s\n' "$body" | grep -oE '"finish_reason":"[a-z]*"|"usage":\{[^}]*|DONE|"error":.*|^status .*' | sed 's/"cached_tokens.*//'
    exit 0
fi
if [ "$kind" = message_stream ]; then
    printf '%s\n' "$body" | sed -nE 's/.*"(text|partial_json)":"(([^"\\]|\\.)*)"\}\}$/\2/p' | tr -d '\n'
    echo
    printf '%s\n' "$body" | grep -oE '"stop_reason":"[a-z_]*"|"output_tokens":[0-9]+\}|message_stop|"error":\{.*|^status .*' | sed 's/"request_id.*//'
    exit 0
fi
[ "$kind" = message ] && body=$(printf '%s' "$body" | sed -E 's/"(cache_read_input_tokens|input_tokens)":[0-9]+/"\1":0/g')
printf '%s\n' "$body" | sed -E 's/"(id|request_id|replica)":"[^"]*"/"\1":""/g; s/"(created|created_at|memory_bytes|ms|[a-z_]*_ms|[a-z]*_duration|cached_tokens|cache_write_tokens)":[0-9.e+-]+/"\1":0/g; s/"cached":(true|false)/"cached":0/g; s/,"completion_tokens_details":\{[^}]*\}//g; s/"(id|document)":[0-9]+/"\1":0/g'
