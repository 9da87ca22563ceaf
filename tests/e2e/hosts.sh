#!/usr/bin/env bash
# http stages against hosts on loopback (tests/node/hosts.mjs), well-behaved and not: what is asked, what is refused,
# and that a host that does not answer holds up nobody.
source "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "Node.js is not installed"
command -v openssl >/dev/null || skip "openssl is not installed"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" \
    -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null ||
    skip "openssl makes no certificate"
: >"$work/log"
node tests/node/hosts.mjs "$work" >"$work/ports" 2>"$work/hosts.err" &
hosts=$!
trap 'kill "$hosts" 2>/dev/null; cleanup' EXIT
for _ in $(seq 200); do [ -s "$work/ports" ] && break; sleep 0.05; done
read -r plain tls other <"$work/ports" || fail "the hosts do not start: $(cat "$work/hosts.err")"
printf 'Bearer s3cret\n' >"$work/token"

stage() { echo "  - name: $1"; echo "    stages: [{name: asked, kind: http, host: $2, $3}]"; }
{
    cat <<YAML
manifest: $PWD/models/models.json
models: [{name: home-intent}]
hosts:
  - {name: local, url: "http://localhost:$plain", methods: [GET, POST], timeout_ms: 15000, max_kb: 64,
     headers: [{name: Authorization, file: token}, {name: x-plain, value: "as it is"}]}
  - {name: secure, url: "https://localhost:$tls/", ca: cert.pem}
  - {name: unknown-ca, url: "https://localhost:$tls"}
  - {name: wrong-name, url: "https://127.0.0.1:$tls", ca: cert.pem}
  - {name: down, url: "http://127.0.0.1:1"}
  - {name: nowhere, url: "http://no-such-host.invalid", timeout_ms: 3000}
  - {name: hurried, url: "http://localhost:$plain", timeout_ms: 1500}
pipelines:
YAML
    stage weather local 'path: "/weather?city={input}"'
    stage secure secure 'path: "/weather?city={input}"'
    stage path local 'path: "/{input}"'
    stage hurried hurried 'path: "/{input}"'
    stage echo local "method: POST, path: /echo, body: '{{\"text\": {input}, \"n\": 3}'"
    for h in unknown-ca wrong-name down nowhere; do stage "$h" "$h" 'path: /weather'; done
    cat <<YAML
  - name: cities
    stages:
      - {name: all, kind: http, host: local, path: "/weather?city={item}", foreach: {of: input}}
      - {name: intent, kind: classify, model: home-intent, input: "{json.all.0.json.city}"}
YAML
} >"$work/c.yaml"
# A proxy of the environment would be asked in vain.
export http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1 all_proxy=http://127.0.0.1:1
start_shoal "$work/c.yaml"
unset http_proxy https_proxy all_proxy

has() { grep -qF -- "$1" <<<"$2" || fail "no $1 in: $2"; }
ask() { # PIPELINE TEXT CURL-ARGS...
    node -e 'console.log(JSON.stringify({pipeline: process.argv[1], input: process.argv[2]}))' "$1" "$2" |
        curl -s -m 20 "$url/v1/process" -d @- "${@:3}"
}

answer=$(ask weather "São Paulo & more" -D "$work/head")
has '"results":{"asked":{"status":200,"json":{"city":"São Paulo & more","degrees":21.5}}}' "$answer"
has "$plain GET /weather?city=S%C3%A3o%20Paulo%20%26%20more Bearer s3cret" "$(cat "$work/log")"
grep -qi '^x-shoal-cache' "$work/head" && fail "an answer of a host is cached: $(cat "$work/head")"
has '"city":"Ulm"' "$(ask secure Ulm)"
answer=$(ask echo 'a "quote", {braces} and
two lines')
has '"json":{"got":{"text":"a \"quote\", {braces} and\ntwo lines","n":3}}' "$answer"
has '"asked":{"status":200,"text":"häuser"}' "$(ask path plain)"
answer=$(ask cities $'Ulm\nBonn')
has '"all":[{"status":200,"json":{"city":"Ulm","degrees":21.5}},{"status":200,"json":{"city":"Bonn","degrees":21.5}}]' \
    "$answer"
has '"intent":{"label":' "$answer"

# ---- hosts that misbehave: each failure names the stage, and never what the host sent
refused() { # PIPELINE TEXT SAYS
    answer=$(ask "$1" "$2")
    has "stage 'asked': " "$answer"
    has "$3" "$answer"
    grep -q 'secret' <<<"$answer" && fail "the answer tells what is nobody's business: $answer"
}
refused path missing "'local' answers 404"
has '"code":"host_failed"' "$answer"
refused path away "'local' answers 302, a redirect, and those are not followed"
grep -q "^$other" "$work/log" && fail "a redirect was followed: $(cat "$work/log")"
refused hurried slow "'hurried' did not answer within 1500 ms"
refused hurried drip "'hurried' did not answer within 1500 ms"
refused path huge "'local' sent more than 64 KiB, which its max_kb allows"
refused path says-huge "'local' sent more than 64 KiB, which its max_kb allows"
refused path heads "'local' "
refused path hang-up "'local' cannot be asked: "
refused path binary "no text in UTF-8"
refused path not-json "says that its answer is JSON, and it is none"
refused path deep "says that its answer is JSON, and it is none"
refused path .. "would leave the host's URL"
refused unknown-ca x "'unknown-ca' cannot be asked: "
refused wrong-name x "'wrong-name' cannot be asked: SSL: no alternative certificate subject name matches"
refused down x "'down' cannot be asked: "
refused nowhere x "'nowhere' cannot be asked: its address is not known"
grep -q 's3cret' "$log" && fail "the log tells a header's value"

# ---- many slow hosts hold up nobody; a client that leaves ends its call
for _ in $(seq 30); do curl -s -m 0.3 "$url/v1/process" -d '{"pipeline":"path","input":"slow"}' >/dev/null & slow="${slow:-} $!"; done
answer=$(curl -s "$url/v1/classify" -d '{"model":"home-intent","input":"lights on"}')
has '"label"' "$answer"
wait $slow
answer=$(curl -s -H 'x-shoal-deadline-ms: 200' "$url/v1/process" -d '{"pipeline":"path","input":"slow"}')
has "the deadline passed while 'local' was asked" "$answer"
has '"city":"Ulm"' "$(ask weather Ulm)"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"

# ---- what cannot be is refused with its line
wrong() { # SED-EXPRESSION SAYS
    sed "$1" "$work/c.yaml" >"$work/wrong.yaml"
    timeout 20 "$SHOAL_BIN" serve -c "$work/wrong.yaml" --port 0 >"$work/out" 2>"$work/err" && fail "taken: $1"
    grep -qF -- "$2" "$work/err" || fail "$1: $(cat "$work/err")"
}
wrong 's/file: token/file: nothing/' "wrong.yaml:5: hosts[0].headers[0].file: "
wrong 's/file: token/file: key.pem, value: x/' "wrong.yaml:5: hosts[0].headers[0]: needs 'value', or 'file' for a secret"
wrong 's/ca: cert.pem/ca: none.pem/' "hosts[1].ca: "
wrong 's/host: down/host: up/' "host: 'up' is not among the hosts of this file"
wrong 's/host: secure,/host: secure, method: POST,/' "method: POST is not among the methods of the host 'secure'"
wrong 's/name: Authorization/name: Host/' "'Host' is no name of a header, or of one that the request itself sets"
wrong 's|url: "http://127.0.0.1:1"|url: "ftp://127.0.0.1"|' "must begin with https:// or http://"
wrong 's|path: "/{input}"|path: "{input}"|' "path: must begin with '/'"
wrong 's|{input}, "n"|"{input}", "n"|' "body: is no JSON"
echo "hosts: asked as configured, and nowhere else"
