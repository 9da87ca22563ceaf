#!/usr/bin/env bash
# Deadlines after heavy work: what one batch taught does not refuse short requests, and no refusal is for ever.
# alone: it compares how long batches take
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<EOF
manifest: $PWD/models/models.json
models: [{name: home-embed}, {name: home-chat-s}]
EOF
start_shoal "$work/c.yaml"

# A batch of 256 long texts; one short text takes a small part of its time. A fifth of the batch is a deadline
# that every short text meets by far, on any machine.
words=$(printf 'many words of a long text %.0s' $(seq 16))
{
    printf '{"model":"home-embed","input":["%s"' "$words"
    for i in $(seq 255); do printf ',"text %d: %s"' "$i" "$words"; done
    printf ']}'
} >"$work/batch.json"
post() { curl -s -o "$work/out" -w '%{http_code} %{time_total}' -m 120 -H 'Cache-Control: no-cache' "$@"; }
read -r code seconds < <(post "$url/v1/embeddings" -d @"$work/batch.json")
[ "$code" = 200 ] || fail "the batch: $code $(head -c 300 "$work/out")"
ms=$(awk -v s="$seconds" 'BEGIN { printf "%d", s * 1000 / 5 + 1 }')

ok=0
for i in $(seq 40); do
    read -r code _ < <(post -H "x-shoal-deadline-ms: $ms" "$url/v1/embeddings" -d "{\"model\":\"home-embed\",\"input\":\"short $i\"}")
    [ "$code" = 200 ] && ok=$((ok + 1))
done
[ "$ok" -ge 35 ] || fail "after a batch of $seconds s, $ok of 40 short texts were answered within $ms ms: $(cat "$work/out")"

# Beside a batch nothing is promised, but a minute of them must not lock the model for those who come after.
post "$url/v1/embeddings" -d @"$work/batch.json" >"$work/beside" &
beside=$!
for i in $(seq 10); do
    post -H "x-shoal-deadline-ms: $ms" "$url/v1/embeddings" -d "{\"model\":\"home-embed\",\"input\":\"beside $i\"}" >/dev/null
done
wait "$beside"
for _ in 1 2 3 4 5; do # other work on this machine may cost one its deadline
    read -r code _ < <(post -H "x-shoal-deadline-ms: $ms" "$url/v1/embeddings" -d '{"model":"home-embed","input":"after"}')
    [ "$code" = 200 ] && break
done
[ "$code" = 200 ] || fail "after the batches: $code $(cat "$work/out")"

# A prompt over the context is the request's fault, whatever the speed: right after the start as later.
printf '{"model":"home-chat-s","messages":[{"role":"user","content":"%s"}]}' "$(printf 'word %.0s' $(seq 10000))" >"$work/long.json"
kill -9 "$(curl -s "$url/readyz" | tr '{' '\n' | grep '"home-chat-s/0"' | grep -o '"pid":[0-9]*' | cut -d: -f2)"
post "$url/v1/chat/completions" -d '{"model":"home-chat-s","max_tokens":400,"messages":[{"role":"user","content":"a b"}]}' >/dev/null
sleep 0.6 # the gateway hears how fast the new worker is a few times a second
for i in 1 2; do
    post "$url/v1/chat/completions" -d '{"model":"home-chat-s","max_tokens":1900,"logit_bias":{"2":-100},"messages":[{"role":"user","content":"go on '$i'"}]}' >"$work/running" &
    read -r code _ < <(post -H 'x-shoal-deadline-ms: 900' "$url/v1/chat/completions" -d @"$work/long.json")
    [ "$code" = 400 ] || fail "a prompt over the context: $code $(cat "$work/out")"
    grep -q '"code":"context_length_exceeded"' "$work/out" || fail "$(cat "$work/out")"
    wait $!
done
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "a batch of $seconds s leaves deadlines of $ms ms alone"
