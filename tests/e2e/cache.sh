#!/usr/bin/env bash
# The exact cache: hit, miss and shared; TTL; streamed and not; and who goes past it.
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<EOF
cache: {mb: 1, ttl_s: 2}
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-slots}, {name: home-embed}, {name: home-chat-s}]
pipelines:
  - name: p
    stages: [{name: intent, kind: classify, model: home-intent}]
EOF
start_shoal "$work/c.yaml"

# state PATH BODY [CURL-ARGS...]: x-shoal-cache of the answer, "-" without one
state() {
    local path=$1 body=$2 id=$BASHPID got
    shift 2
    [ "$(curl -s -m 20 -o "$work/a.$id" -D "$work/h.$id" -w '%{http_code}' "$@" "$url$path" -d "$body")" = 200 ] ||
        { cat "$work/a.$id"; return; }
    got=$(tr -d '\r' <"$work/h.$id" | grep -i '^x-shoal-cache:' | cut -d' ' -f2)
    echo "${got:--}"
}
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }

chat='{"model":"home-chat-s","temperature":0,"max_tokens":8,"messages":[{"role":"user","content":"hello"}]'
requests=(
    '/v1/classify {"model":"home-intent","input":"hello"}'
    '/v1/tag {"model":"home-slots","input":"hello"}'
    '/v1/embeddings {"model":"home-embed","input":"hello"}'
    '/v1/process {"pipeline":"p","input":"hello"}'
    '/v1/completions {"model":"home-chat-s","temperature":0,"max_tokens":8,"prompt":"hello"}'
    "/v1/chat/completions $chat}"
)
for r in "${requests[@]}"; do
    path=${r%% *} body=${r#* }
    want "$(state "$path" "$body" -H 'Cache-Control: no-store')" - "$path past the cache"
    want "$(state "$path" "$body")" miss "$path first"
    want "$(state "$path" "$body")" hit "$path again"
    want "$(state "$path" "$body" -H 'Cache-Control: max-age=0, no-cache')" - "$path past the cache"
done
want "$(state /v1/chat/completions "$chat,\"stream\":true}")" hit "streamed after unary"
want "$(state /v1/chat/completions "$chat,\"seed\":4,\"top_p\":0.5}")" hit "what greedy sampling does not read"
want "$(state /v1/chat/completions "$chat,\"stop\":[\"x\"]}")" miss "another stop string"
want "$(state /v1/chat/completions "${chat/\"temperature\":0/\"temperature\":1}}")" - "a draw"

long='{"model":"home-chat-s","temperature":0,"max_tokens":900,"logit_bias":{"2":-100},"messages":[{"role":"user","content":"go on"}]}'
for i in 1 2 3 4; do state /v1/chat/completions "$long" >"$work/s.$i" & shared+=($!); done
wait "${shared[@]}"
[ "$(sort "$work"/s.? | tr '\n' ' ')" = "miss shared shared shared " ] || fail "four at once: $(cat "$work"/s.?)"
# A client that leaves hands the work on instead of taking it along.
long=${long/900/1900}
curl -sN -m 0.1 "$url/v1/chat/completions" -d "${long%\}},\"stream\":true}" >/dev/null &
sleep 0.05
want "$(state /v1/chat/completions "$long")" miss "after the first client left"

sleep 2.1
want "$(state /v1/classify '{"model":"home-intent","input":"hello"}')" miss "after its time"
metrics=$(curl -s "$url/metrics" | grep '^shoal_cache_lookups_total')
for r in hit miss shared; do grep -q "result=\"$r\"} [1-9]" <<<"$metrics" || fail "no $r in $metrics"; done
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "six endpoints missed, hit, shared, expired and were passed by"
