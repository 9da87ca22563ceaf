#!/usr/bin/env bash
# SIGTERM with drain_grace_ms: /readyz is 503 and new requests are answered all the same; then the port closes. A stream
# that is longer than drain_ms ends with an error that says to send it again, and goes on after the next start where it
# was, by Last-Event-ID.
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<YAML
manifest: $PWD/models/models.json
cache: {mb: 0}
drain_grace_ms: 600000
drain_ms: 60000
models: [{name: home-intent}, {name: home-chat-m}]
YAML
start_shoal "$work/c.yaml"
start_stream
kill "$server"
for _ in $(seq 400); do [ "$(curl -s -o "$work/r" -w '%{http_code}' "$url/readyz")" = 503 ] && break; sleep 0.02; done
grep -q '"status":"draining"' "$work/r" || fail "/readyz: $(cat "$work/r")"
[ "$(curl -s -o "$work/r" -w '%{http_code}' "$url/readyz?model=home-intent")" = 503 ] || fail "/readyz?model=: $(cat "$work/r")"
[ "$(curl -s -o "$work/r" -w '%{http_code}' "$url/v2/health/ready")" = 400 ] || fail "KServe: $(cat "$work/r")"
[ "$(curl -s -o "$work/r" -w '%{http_code}' "$url/healthz")" = 200 ] || fail "/healthz: $(cat "$work/r")"
for _ in 1 2 3; do
    late=$(curl -s -o "$work/late" -w '%{http_code}' -m 60 "$url/v1/classify" -d '{"model":"home-intent","input":"hello"}')
    [ "$late" = 200 ] || fail "a request during the grace: $late $(cat "$work/late")"
done
wait "$stream"
grep -q 'data: \[DONE\]' "$work/stream" || fail "the running stream was cut: $(tail -c 300 "$work/stream")"
sleep 0.3      # one within 250 ms would be the same
kill "$server" # it ends the grace
wait "$server"
stopped=$?
server=
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
[ "$(curl -s -o /dev/null -w '%{http_code}' -m 5 "$url/healthz")" = 000 ] || fail "the port is open still"

# The grace ends by itself, too; SIGINT has none.
sed -i 's/^drain_grace_ms:.*/drain_grace_ms: 50/' "$work/c.yaml"
start_shoal "$work/c.yaml"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
grep -q 'component=serve event=withdrawn ms=50' "$log" || fail "no grace: $(grep component=serve "$log")"
start_shoal "$work/c.yaml"
kill -INT "$server"
wait "$server"
[ $? -eq 0 ] || fail "SIGINT"
server=
grep -q event=withdrawn "$log" && fail "SIGINT had a grace"

# ---- longer than drain_ms
sed -i 's/^drain_grace_ms:.*//; s/^drain_ms:.*/drain_ms: 1/' "$work/c.yaml"
body='{"model":"home-chat-m","stream":true,"temperature":1,"seed":5,"ignore_eos":true,"max_tokens":900,"messages":[{"role":"user","content":"tell me everything"}]}'
text() { sed -n 's/.*"content":"\(\([^"\\]\|\\.\)*\)".*/\1/p' "$@" | tr -d '\n'; }
start_shoal "$work/c.yaml"
curl -sN -m 100 "$url/v1/chat/completions" -d "$body" >"$work/whole"
for _ in $(seq 10); do # again, where it was quicker
    start_stream
    kill "$server"
    wait "$stream"
    wait "$server"
    server=
    grep -q 'data: \[DONE\]' "$work/stream" || break
    start_shoal "$work/c.yaml"
done
grep -q '"code":"stopping"' "$work/stream" || fail "no error says that it was cut: $(tail -c 400 "$work/stream")"
grep -q 'send the request again' "$work/stream" || fail "what to do: $(tail -c 400 "$work/stream")"
id=$(grep '^id: ' "$work/stream" | tail -1 | cut -d' ' -f2)
[ -n "$id" ] || fail "no id: $(head -c 300 "$work/stream")"
start_shoal "$work/c.yaml"
curl -sN -m 100 "$url/v1/chat/completions" -H "last-event-id: $id" -d "$body" >"$work/rest"
grep -q 'data: \[DONE\]' "$work/rest" || fail "the rest: $(tail -c 300 "$work/rest")"
[ "$(text "$work/stream" "$work/rest")" = "$(text "$work/whole")" ] || fail "the halves are not the whole: $(text "$work/stream" | tail -c 100) | $(text "$work/rest" | head -c 100)"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "answered during the grace; a stream that was cut went on after the next start"
