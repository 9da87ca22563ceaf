#!/usr/bin/env bash
# A model that no machine may have, over gRPC and over a WebSocket: refused with the placement's reason.
source "$(dirname "$0")/lib.sh"
npm_clients missing.mjs
export SHOAL_PROTO=$PWD/proto
"$SHOAL_BIN" ca init --state "$work/gw" >/dev/null
cat >"$work/c.yaml" <<YAML
manifest: $PWD/models/models.json
cluster: {listen: "127.0.0.1:0", name: boss, state: $work/gw}
deadline_ms: 300000
models: [{name: home-intent}, {name: home-chat-s, place: {labels: [nowhere]}}]
YAML
start_shoal "$work/c.yaml"
for _ in $(seq 600); do curl -s "$url/readyz?model=home-chat-s" | grep -q 'lacks a label' && break; sleep 0.05; done
(cd "$modules" && timeout 200 node missing.mjs "$url" home-chat-s "it lacks a label (boss)") || fail "it was not refused with the reason"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
