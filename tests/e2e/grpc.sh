#!/usr/bin/env bash
# gRPC for applications: @grpc/grpc-js in clear text and over TLS, with keys; streams whose workers die; a drain.
# long: packages of npm
source "$(dirname "$0")/lib.sh"
npm_clients *.mjs
export SHOAL_STATE=$work/state SHOAL_PROTO=$PWD/proto SHOAL_DATA=$PWD/tests/data/speech/wav
shipped | sed -E 's|^( +)- name: home-embed|\1- name: home-ears\n&|' >"$work/clear.yaml"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1 \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null || fail "openssl"
{
    cat "$work/clear.yaml"
    echo "tls: {cert: $work/cert.pem, key: $work/key.pem}"
    echo "api_keys: [\"sha256:$(printf %s sk-grpc | sha256sum | cut -d' ' -f1)\","
    echo "  {name: few, sha256: $(printf %s sk-few | sha256sum | cut -d' ' -f1), models: [home-intent]}]"
} >"$work/tls.yaml"

clients() { # WHERE FILE...
    local where=$1
    shift
    (cd "$modules" && timeout 120 node --test --test-reporter=tap "$@") >"$work/node.log" 2>&1 && return
    grep -A25 '^not ok' "$work/node.log" | grep -vE '^ +(duration_ms|type):' | head -80
    fail "a client failed: $where"
}

start_shoal "$work/clear.yaml"
export SHOAL_URL=$url SHOAL_CALLS=$work/calls.json
clients "in clear text" shoal_grpc.mjs
clients "KServe" kserve_grpc.mjs
table=$(node tests/node/clients_table.mjs "tests/e2e/$(basename "$0")" "$SHOAL_CALLS" docs/clients.md \
    ${SHOAL_WRITE_CLIENTS:+--write} 2>&1) || {
    echo "$table"
    fail "docs/clients.md is not what the clients saw: SHOAL_WRITE_CLIENTS=1 bash $0"
}
unset SHOAL_CALLS
rude=$(cd "$modules" && node grpc_rude.mjs "$url" "$(gateway)" 2>&1) || fail "$rude"
said=$(cd "$modules" && node grpc_disturbed.mjs "$url" home-chat-s 5) || fail "$said"
(cd "$modules" && node grpc_drain.mjs "$url" "$server") || fail "drain"
wait "$server"
[ $? -eq 0 ] || fail "the server did not end well"
server=

sed 's/^limits:$/&\n  request_timeout_ms: 300\n  min_body_rate: 1048576/' "$work/clear.yaml" >"$work/hasty.yaml"
start_shoal "$work/hasty.yaml"
export SHOAL_URL=$url
clients "which rests" kserve_rest.mjs
stop_shoal

start_shoal "$work/tls.yaml"
export SHOAL_URL=$url SHOAL_KEY=sk-grpc SHOAL_CA=$work/cert.pem NODE_EXTRA_CA_CERTS=$work/cert.pem
clients "over TLS, with a key" shoal_grpc.mjs
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "$said; $rude"
