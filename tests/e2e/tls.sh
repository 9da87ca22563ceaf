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
end=$(date -d "$(openssl x509 -in "$work/cert.pem" -noout -enddate | cut -d= -f2)" +%s)
grep -qx "shoal_certificate_expiry_timestamp_seconds{use=\"listener\",kind=\"certificate\"} $end" "$work/a" ||
    fail "the certificate ends at $end: $(grep certificate "$work/a")"
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

# Shoal's own commands over https: with the CA that is named, and not without it, nor under another name.
export SHOAL_API_KEY=sk-first HOME=$work
says() { # CODE WORDS COMMAND...
    local code=$1 words=$2
    shift 2
    timeout 20 "$SHOAL_BIN" "$@" >"$work/said" 2>&1 </dev/null
    local rc=$?
    [ $rc -eq "$code" ] && grep -qE "$words" "$work/said" || fail "shoal $* ends with $rc: $(cat "$work/said")"
}
says 0 '^home-intent +ready' ps --server "$url" --ca "$work/cert.pem"
SHOAL_CA=$work/cert.pem SHOAL_HOST=$url says 0 '^home-intent +ready' ps
says 0 'iot_hue_light' run home-intent "turn on the light" --server "$url" --ca "$work/cert.pem"
says 0 'home-intent is ready|unloaded|home-intent' load home-intent --server "$url" --ca "$work/cert.pem"
says 1 'which is not among the CAs of this system: give the file of its CA \(--ca FILE\)' ps --server "$url"
says 1 'none.pem: No such file' ps --server "$url" --ca "$work/none.pem"
says 1 'closed|does not speak|HTTP' ps --server "http://127.0.0.1:$port"
{ echo "listen: 127.0.0.1:$port"; cat "$work/c.yaml"; } >"$work/shoal.yaml"
(cd "$work" && says 0 '^home-intent' ps) || exit 1 # that of shoal.yaml, whose socket needs no certificate
stop_shoal
# A server that speaks no more than TLS 1.2, and one that speaks none.
mkdir -p "$work/old/v1"
printf 'HTTP/1.1 200 OK\r\ncontent-length: 35\r\n\r\n{"replicas":[{"model":"from-1.2"}]}' >"$work/old/v1/status"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key2.pem" -out "$work/cert2.pem" \
    -days 2 -subj /CN=elsewhere 2>/dev/null
for name in cert cert2; do
    free=$(free_port 2)
    (cd "$work/old" && exec openssl s_server -accept "$free" -cert "../$name.pem" -key "../${name/cert/key}.pem" -tls1_2 -HTTP -quiet) >/dev/null 2>&1 &
    old=$!
    for _ in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$free") 2>/dev/null && break; sleep 0.05; done
    if [ $name = cert ]; then
        says 0 'from-1.2' ps --server "https://127.0.0.1:$free" --ca "$work/cert.pem"
    else
        says 1 'proves to be "elsewhere", not "127.0.0.1"' ps --server "https://127.0.0.1:$free" --ca "$work/cert2.pem"
    fi
    end "$old"
done
start_shoal <(printf 'models: [{name: home-intent}]\nmanifest: %s\n' "$PWD/models/models.json")
says 1 'it does not speak TLS' ps --server "https://127.0.0.1:$port"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
unset SHOAL_API_KEY

sed -i 's/sha256:[0-9a-f]*/sk-plain/' "$work/c.yaml"
"$SHOAL_BIN" serve -c "$work/c.yaml" --port 0 >/dev/null 2>"$log" && fail "a plain key was accepted"
grep -q 'c.yaml:2: api_keys\[0\]' "$log" || fail "no line for a plain key: $(cat "$log")"
echo "HTTP/2 and HTTP/1.1 over TLS, two keys in and eight things out"
