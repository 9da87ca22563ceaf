#!/usr/bin/env bash
# TLS with ALPN on one port, API keys kept as hashes, and nothing else let in.
source "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || skip "openssl is not installed"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" \
    -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null || skip "openssl makes no certificate"
cat >"$work/c.yaml" <<EOF
tls: {cert: cert.pem, key: key.pem}
api_keys: ["sha256:$(printf %s sk-first | sha256sum | cut -d' ' -f1)", "sha256:$(printf %s sk-second | sha256sum | cut -d' ' -f1)"]
limits: {request_timeout_ms: 3000}
manifest: $PWD/models/models.json
models: [{name: home-intent}]
EOF
start_shoal "$work/c.yaml"
[[ $url = https://* ]] || fail "the url is $url"

# ask WANTED-STATUS CURL-ARGS...
ask() {
    local want=$1 got
    shift
    got=$(curl -s -m 10 --cacert "$work/cert.pem" -o "$work/a" -D "$work/h" -w '%{http_code} %{http_version}' "$@")
    [ "${got% *}" = "$want" ] || fail "$*: $got, wanted $want: $(head -c 300 "$work/a")"
    version=${got#* }
}
classify=("$url/v1/classify" -d '{"model":"home-intent","input":"hello"}')
ask 200 -H 'Authorization: Bearer sk-first' "${classify[@]}"
[ "$version" = 2 ] || fail "ALPN chose HTTP/$version, not 2"
ask 200 --http1.1 -H 'Authorization: Bearer sk-second' "${classify[@]}"
[ "$version" = 1.1 ] || fail "ALPN chose HTTP/$version, not 1.1"
for auth in 'X: none' 'Authorization: Bearer sk-firs' 'Authorization: Bearer sk-first2' 'Authorization: Bearer' \
    'Authorization: sk-first' "Authorization: Bearer $(printf %s sk-first | sha256sum | cut -d' ' -f1)"; do
    ask 401 -H "$auth" "${classify[@]}"
    grep -q '"code":"invalid_api_key"' "$work/a" || fail "$auth: $(cat "$work/a")"
    grep -qi '^www-authenticate: Bearer' "$work/h" || fail "$auth: no www-authenticate"
done
ask 401 "$url/v1/models"
ask 401 "$url/metrics"
ask 200 -H 'Authorization: Bearer sk-first' "$url/metrics"
ask 200 "$url/healthz"

curl -s -m 5 "http://127.0.0.1:$port/healthz" >/dev/null && fail "clear text was answered on the TLS port"
old=$(openssl s_client -connect "127.0.0.1:$port" -tls1_1 </dev/null 2>&1)
[[ $old = *"alert protocol version"* || $old = *"no protocols available"* ]] || fail "TLS 1.1: $old"
exec 3<>"/dev/tcp/127.0.0.1/$port"
head -c 2000 /dev/urandom >&3
timeout 30 cat <&3 >/dev/null || [ $? -ne 124 ] || fail "noise keeps a connection"
exec 3<&-
exec 3<>"/dev/tcp/127.0.0.1/$port"
timeout 30 cat <&3 >/dev/null || [ $? -ne 124 ] || fail "a client that says nothing keeps a connection"
exec 3<&-
ask 200 -H 'Authorization: Bearer sk-first' "${classify[@]}"
grep -q 'sk-first\|sk-second' "$log" && fail "a key is in the log"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"

sed -i 's/sha256:[0-9a-f]*/sk-plain/' "$work/c.yaml"
"$SHOAL_BIN" serve -c "$work/c.yaml" --port 0 >/dev/null 2>"$log" && fail "a plain key was accepted"
grep -q 'c.yaml:2: api_keys\[0\]' "$log" || fail "no line for a plain key: $(cat "$log")"
echo "HTTP/2 and HTTP/1.1 over TLS, two keys in and eight things out"
