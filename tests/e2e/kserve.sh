#!/usr/bin/env bash
# The Open Inference Protocol over REST, by a client made from its specification, over a model of each task; and its
# keys and draining.
source "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "node is not installed"
data=$PWD/tests/data
conf=$work/c.yaml
cat >"$conf" <<YAML
manifest: $PWD/models/models.json
limits: {max_body_bytes: 4194304}
models:
  - {name: home-intent, path: $PWD/models/home-intent.gguf}
  - {name: home-slots, path: $PWD/models/home-slots.gguf}
  - {name: home-embed, path: $PWD/models/home-embed.gguf}
  - {name: home-chat-s, path: $PWD/models/home-chat-s.gguf}
  - {name: home-chat-m, path: $PWD/models/home-chat-m.gguf}
  - {name: ranker, path: $data/hf/cross-encoder-rerank}
  - {name: trees, path: $data/sensors/trees}
  - {name: table, path: $data/forest/reg.json}
  - {name: look, path: $data/hf/vit-tiny}
  - {name: hears, path: $PWD/models/home-ears.gguf}
ensembles:
  - {name: pair, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m}]}
YAML
start_shoal "$conf"
SHOAL_URL=$url SHOAL_DATA=$data timeout 100 node --test --test-reporter=tap tests/node/kserve.mjs >"$work/node.log" 2>&1 || {
    grep -A25 '^not ok' "$work/node.log" | grep -vE '^ +(duration_ms|type):' | head -60
    fail "the client failed"
}
stop_shoal

# keys: health is for everybody, models are not
echo "api_keys: ['sha256:$(printf secret | sha256sum | cut -c1-64)']" >>"$conf"
start_shoal "$conf"
status() { curl -s -o "$work/out" -w '%{http_code}' "$@"; }
[ "$(status "$url/v2/health/ready")" = 200 ] || fail "health needs a key"
[ "$(status "$url/v2/models/table")" = 401 ] || fail "a model needs no key"
grep -q '^{"error":"' "$work/out" || fail "a refusal reads $(cat "$work/out")"
ask='{"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":["a"]}]}'
[ "$(status "$url/v2/models/home-embed/infer" -d "$ask")" = 401 ] || fail "an inference needs no key"
[ "$(status "$url/v2/models/home-embed/infer" -H 'authorization: Bearer secret' -d "$ask")" = 200 ] ||
    fail "a key opens nothing: $(cat "$work/out")"
stop_shoal

# and what is left of a key's rates is told once
sed -i 's/^api_keys:.*/api_keys: [{name: few, sha256: '"$(printf secret | sha256sum | cut -c1-64)"', limits: {requests_per_minute: 5}}]/' "$conf"
start_shoal "$conf"
for left in 4 3; do
    curl -s -o "$work/out" -D "$work/head" "$url/v2/models/home-embed/infer" -H 'authorization: Bearer secret' -d "$ask"
    [ "$(grep -ic '^x-ratelimit-remaining-requests' "$work/head")" = 1 ] || fail "rates are told otherwise: $(cat "$work/head")"
    grep -qi "^x-ratelimit-remaining-requests: $left" "$work/head" || fail "an inference counts otherwise: $(cat "$work/head")"
done
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
grep -E '^# pass' "$work/node.log" | tr '\n' ' '
echo
