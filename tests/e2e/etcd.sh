#!/usr/bin/env bash
# Two gateways that know each other through etcd alone: each answers for the other's model, also while etcd is away; one
# leads; what is killed goes.
source "$(dirname "$0")/lib.sh"
etcd=$(command -v etcd) || skip "etcd is not installed (scripts/setup.sh --test)"
other= keeper=
stop_others() {
    [ -z "$other" ] || kill -9 "$other" 2>/dev/null
    [ -z "$keeper" ] || { kill -9 "$keeper" && wait "$keeper"; } 2>/dev/null
    cleanup
}
trap stop_others EXIT
port0=$(free_port 6) peer0=$(free_port 7)
start_etcd() {
    "$etcd" --name one --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$port0" \
        --advertise-client-urls "http://127.0.0.1:$port0" --listen-peer-urls "http://127.0.0.1:$peer0" \
        --initial-advertise-peer-urls "http://127.0.0.1:$peer0" --initial-cluster "one=http://127.0.0.1:$peer0" \
        >"$work/etcd.log" 2>&1 &
    keeper=$!
}
configure() { # NAME MODEL
    cat >"$work/$1.yaml" <<YAML
manifest: $PWD/models/models.json
cache: {mb: 0}
models: [{name: $2}]
discovery:
  etcd: {endpoints: ["127.0.0.1:$port0"], prefix: /shoal/v1/test, lease_s: 6}
YAML
}
until_true() {
    local what=$1
    shift
    for _ in $(seq 600); do
        "$@" && return 0
        sleep 0.05
    done
    fail "$what: never came to pass: $(curl -s "$url/readyz"); $(tail -5 "$work/b.log")"
}
ask() { # URL MODEL
    curl -s -m 20 "$1/v1/embeddings" -H 'content-type: application/json' -d "{\"model\":\"$2\",\"input\":\"x\"}"
}
classify() { curl -s -m 20 "$1/v1/classify" -d '{"model":"home-intent","input":"turn off the kitchen light"}'; }
embeds() { ask "$1" home-embed | grep -q '"embedding"'; }
classifies() { classify "$1" | grep -q '"label"'; }
says() { curl -s "$url/readyz" | grep -q "$1"; }
meters() { curl -s "$url/metrics" | grep -q "^shoal_source_up{source=\"etcd\"} $1"; }

start_etcd
configure a home-intent
configure b home-embed
"$SHOAL_BIN" serve -c "$work/b.yaml" --port 0 >"$work/b.out" 2>"$work/b.log" &
other=$!
start_shoal "$work/a.yaml"
other_url() { url_b=$(grep -o 'http://[0-9.:]*' "$work/b.out" | head -1); [ -n "$url_b" ]; }
until_true "the other gateway is ready" other_url
until_true "a embeds with b's worker" embeds "$url"
until_true "b classifies with a's worker" classifies "$url_b"
until_true "the metric says so" meters 1
one_leads() { [ "$(cat "$log" "$work/b.log" | grep -c 'component=etcd event=elected')" = 1 ]; }
until_true "one of them leads" one_leads

kill -STOP "$keeper"
until_true "a says that etcd is away" says '"name":"etcd","synced":true,"trouble":"etcd at 127.0.0.1'
until_true "the metric says so, too" meters 0
embeds "$url" || fail "the last view is gone: $(ask "$url" home-embed)"
sleep 4 # longer than the lease, with what it took to say that etcd is away
embeds "$url" || fail "the last view is gone after the lease: $(ask "$url" home-embed)"
kill -CONT "$keeper"
until_true "a is in touch again" says '"name":"etcd","synced":true,"trouble":""'
embeds "$url" || fail "b's worker was dropped though it lives: $(ask "$url" home-embed)"

kill -9 "$other" # its workers go with it, its keys with the lease
wait "$other" 2>/dev/null
other=
gone() { ! curl -s "$url/readyz" | grep -q '"model":"home-embed"'; }
until_true "what the killed gateway served is gone" gone
leads() { grep -E 'event=(elected|deposed)' "$log" | tail -1 | grep -q event=elected; }
until_true "a leads" leads
stop_shoal
[ "$stopped" = 0 ] || fail "exit $stopped"
echo "two gateways answer for each other, with etcd frozen and one of them killed"
