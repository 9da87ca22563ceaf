#!/usr/bin/env bash
# Clients that do not read: their generations rest, others have the places, and nothing is lost when they read.
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<EOF
manifest: $PWD/models/models.json
models: [{name: home-chat-s, max_batch: 4}]
EOF
start_shoal "$work/c.yaml"
# Eight choices of 1,900 tokens with twenty alternatives each are tens of megabytes: more than sockets hold.
long='{"model":"home-chat-s","stream":true,"n":8,"temperature":0,"max_tokens":1900,"logit_bias":{"2":-100},"logprobs":true,"top_logprobs":20,"messages":[{"role":"user","content":"go on"}]}'
gauge() { curl -s "$url/metrics" | grep "^shoal_worker_$1{" | awk '{ print $2 }'; }
chat() { curl -s -o "$work/out" -w '%{http_code}' -m 10 -H 'Cache-Control: no-cache' "$url/v1/chat/completions" -d "$1"; }

exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCache-Control: no-cache\r\nContent-Length: %d\r\n\r\n%s' ${#long} "$long" >&3
quiet=0
for _ in $(seq 150); do # all eight wait, none has a place: they rest
    sleep 0.1
    if [ "$(gauge queue)" = 8 ] && [ "$(gauge running)" = 0 ]; then quiet=$((quiet + 1)); else quiet=0; fi
    [ "$quiet" -ge 15 ] && break
done
[ "$quiet" -ge 15 ] || fail "a client that does not read has $(gauge running) places, $(gauge queue) of its choices wait"
for i in 1 2 3; do
    [ "$(chat '{"model":"home-chat-s","max_tokens":16,"messages":[{"role":"user","content":"light '$i'"}]}')" = 200 ] || fail "beside it: $(cat "$work/out")"
done
timeout 60 cat <&3 >"$work/all"
exec 3<&-
grep -q 'data: \[DONE\]' "$work/all" || fail "the answer is not whole: $(tail -c 300 "$work/all")"
[ "$(grep -o '"finish_reason":"length"' "$work/all" | wc -l)" -eq 8 ] || fail "not all choices ended: $(tail -c 300 "$work/all")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "eight choices rested while nobody read them, then all were whole"
