#!/usr/bin/env bash
# Hostile clients on every transport (slow, many, large, nested, compressed, cancelled): beside them others are answered, no turn of the
# event loop does too much, and memory stays bounded. The cases are in tests/attack; ATTACK=FILTER chooses some.
# early: it takes long
# long: minutes of CPU
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
cat >"$work/c.yaml" <<EOF
limits: {max_body_bytes: 1048576, max_connections: 128, max_bodies_bytes: 16777216, request_timeout_ms: 5000}
listen: "127.0.0.1:0"
also_listen: ["unix:$work/s.sock"]
retrieval: {path: $work/c.db}
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-chat-s}, {name: home-embed}, {name: home-ears}]
EOF
start_shoal "$work/c.yaml"
: "${ATTACK_LOG:=$work/attack.log}"
timeout 800 /usr/bin/env python3 tests/attack/attack.py test "$url" "$work/s.sock" "$(gateway)" "${ATTACK:-}" &>"$ATTACK_LOG" || {
    grep -E '^(FAIL|wrong|Traceback| )' "$ATTACK_LOG" | tail -60
    fail "$(tail -1 "$ATTACK_LOG")"
}
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
tail -1 "$ATTACK_LOG"
