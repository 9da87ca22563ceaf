#!/usr/bin/env bash
# Workers that other programs start (pods of Kubernetes, say) and that gateways reach at their own addresses: mutual TLS, names from DNS.
# A worker that is told to go, or is killed, loses no byte of a stream; certificates that are renewed are used; nobody else is let in.
source "$(dirname "$0")/lib.sh"
dnsmasq=$(PATH=$PATH:/usr/sbin:/sbin command -v dnsmasq) || skip "dnsmasq is not installed (scripts/setup.sh --test)"
declare -A worker clients
name_server=
stop_others() { kill -9 "${worker[@]}" $name_server 2>/dev/null; cleanup; }
trap stop_others EXIT

# ---- certificates of one CA, as cert-manager would make them: names, and no common name
ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -keyout "$work/$1.key" -out "$work/$1.crt" 2>/dev/null; }
sign() { # NAME DNS-NAME [CA]
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj / -addext "subjectAltName=DNS:$2" -keyout "$work/$1.key.new" -out "$work/$1.csr" 2>/dev/null &&
        openssl x509 -req -in "$work/$1.csr" -CA "$work/${3:-ca}.crt" -CAkey "$work/${3:-ca}.key" -CAcreateserial -days 2 -copy_extensions copy -out "$work/$1.crt.new" 2>/dev/null ||
        fail "openssl made no certificate of $1"
    mv "$work/$1.crt.new" "$work/$1.crt"
    mv "$work/$1.key.new" "$work/$1.key"
}
ca ca
ca foreign
sign worker shoal-worker
sign gateway shoal-gateway
sign stranger stranger
sign liar shoal-gateway foreign

# ---- two workers, by SRV records
tls=(--tls-cert "$work/worker.crt" --tls-key "$work/worker.key" --tls-ca "$work/ca.crt" --tls-client shoal-gateway)
start_worker() { # N
    "$SHOAL_BIN" worker --name chat --model models/home-chat-m.gguf --address "127.0.0.1:${at[$1]}" "${tls[@]}" --log-level info 2>>"$work/worker$1.log" &
    worker[$1]=$!
}
ns_port=$(free_port)
at=([1]=$(free_port 1) [2]=$(free_port 2))
"$dnsmasq" --keep-in-foreground --no-resolv --no-hosts --bind-interfaces --listen-address=127.0.0.1 --user= --group= \
    --pid-file= --conf-file=/dev/null --port="$ns_port" --local-ttl=1 \
    --srv-host=_worker._tcp.chat.test,localhost,"${at[1]}" --srv-host=_worker._tcp.chat.test,localhost,"${at[2]}" &
name_server=$!
cat >"$work/c.yaml" <<CONFIG
models: [{name: chat, external: true}]
discovery:
  tls: {cert: gateway.crt, key: gateway.key, ca: ca.crt}
  dns: [{name: _worker._tcp.chat.test, model: chat}]
  dns_server: 127.0.0.1:$ns_port
CONFIG
start_worker 1
start_worker 2
start_shoal "$work/c.yaml"
n=0
until [ "$(curl -s "$url/readyz" | grep -o '"state":"ready"' | wc -l)" -ge 2 ]; do
    [ $((n++)) -lt 400 ] || fail "two workers never were ready: $(curl -s "$url/readyz")"
    sleep 0.05
done
n=0

# ---- streams: four at a time are on both workers
SEEDS='1 2 3 4'
stream() { # SEED FILE
    curl -sN -m 100 "$url/v1/chat/completions" -H 'cache-control: no-store' -d '{"model":"chat","stream":true,"temperature":1,"seed":'"$1"',"ignore_eos":true,"max_tokens":900,"messages":[{"role":"user","content":"tell me everything"}]}' >"$2"
}
said() { sed -n 's/^data: {.*"content":"\(.*\)"}.*/\1/p' "$1" | tr -d '\n'; }
for seed in $SEEDS; do
    stream "$seed" "$work/undisturbed$seed"
    grep -q 'data: \[DONE\]' "$work/undisturbed$seed" || fail "no whole stream: $(tail -c 300 "$work/undisturbed$seed")"
done
for signal in TERM KILL; do
    for seed in $SEEDS; do
        : >"$work/moved$seed"
        stream "$seed" "$work/moved$seed" &
        clients[$seed]=$!
    done
    for seed in $SEEDS; do until grep -q content "$work/moved$seed"; do sleep 0.005; done; done
    kill -"$signal" "${worker[1]}"
    wait "${worker[1]}"
    status=$?
    wait "${clients[@]}"
    for seed in $SEEDS; do
        grep -q 'data: \[DONE\]' "$work/moved$seed" || fail "a stream broke at SIG$signal: $(tail -c 300 "$work/moved$seed")"
        [ "$(said "$work/moved$seed")" = "$(said "$work/undisturbed$seed")" ] || fail "a stream is another since SIG$signal"
    done
    [ $signal = KILL ] || [ $status = 0 ] || fail "a worker that was told to go exits with $status"
    start_worker 1
    n=0
    until [ "$(curl -s "$url/readyz" | grep -o '"state":"ready"' | wc -l)" -ge 2 ]; do
        [ $((n++)) -lt 400 ] || fail "the worker that came back is not ready: $(curl -s "$url/readyz")"
        sleep 0.05
    done
done
curl -s "$url/metrics" | grep -qE '^shoal_moves_total\{cause="lost"\} [1-9]' || fail "no stream has moved"
for kind in certificate:gateway.crt ca:ca.crt; do
    end=$(date -d "$(openssl x509 -in "$work/${kind#*:}" -noout -enddate | cut -d= -f2)" +%s)
    curl -s "$url/metrics" | grep -qx "shoal_certificate_expiry_timestamp_seconds{use=\"workers\",kind=\"${kind%:*}\"} $end" ||
        fail "${kind#*:} ends at $end: $(curl -s "$url/metrics" | grep certificate)"
done

# ---- who is not let in
knock() { # NAME: a TLS client with its certificate, "-": without; what it hears
    local own=()
    [ "$1" = - ] || own=(-cert "$work/$1.crt" -key "$work/$1.key")
    { sleep 0.3; echo; } | timeout 10 openssl s_client -connect "127.0.0.1:${at[1]}" -tls1_3 -alpn h2 "${own[@]}" -CAfile "$work/ca.crt" 2>&1
}
refusals() { cat "$work"/worker[12].log | grep -c 'event=refused'; }
quiet=$(refusals)
for _ in 1 2 3; do (exec 3<>"/dev/tcp/127.0.0.1/${at[1]}") || fail "the port is closed"; done # a probe
for who in - stranger liar; do
    before=$(refusals)
    knock $who >"$work/heard"
    for _ in $(seq 100); do [ "$(refusals)" -gt "$before" ] && break; sleep 0.05; done
    [ "$(refusals)" -gt "$before" ] || fail "$who was let in: $(tail -5 "$work/heard")"
done
[ "$(refusals)" = $((quiet + 3)) ] || fail "probes are logged as refusals: $(grep refused "$work/worker1.log")"
grep -q 'it is not shoal-gateway' "$work/worker1.log" || fail "nobody said why the stranger was refused: $(grep refused "$work/worker1.log")"
knock gateway >"$work/heard" && grep -q 'Verify return code: 0' "$work/heard" || fail "the gateway's certificate is refused: $(tail -5 "$work/heard")"
knock gateway | openssl x509 -noout -serial >"$work/serial"

# ---- certificates are renewed in place, the key after its certificate
sign worker shoal-worker
sign gateway shoal-gateway
for log_of in "$work/worker1.log" "$work/worker2.log" "$log"; do
    for _ in $(seq 300); do grep -q event=certificate_renewed "$log_of" && break; sleep 0.05; done
    grep -q event=certificate_renewed "$log_of" || fail "$log_of does not name a renewed certificate"
done
[ "$(knock gateway | openssl x509 -noout -serial)" != "$(cat "$work/serial")" ] || fail "the worker shows its old certificate"
kill -9 "${worker[1]}" "${worker[2]}"
wait "${worker[@]}" 2>/dev/null
start_worker 1
stream 1 "$work/renewed"
[ "$(said "$work/renewed")" = "$(said "$work/undisturbed1")" ] || fail "no stream since certificates were renewed: $(tail -c 300 "$work/renewed")"

# ---- another model at an address that the gateway knows, as when a pod gets the address of one that has gone
kill -9 "${worker[1]}"
wait "${worker[1]}" 2>/dev/null
"$SHOAL_BIN" worker --name other --model models/home-chat-s.gguf --address "127.0.0.1:${at[1]}" "${tls[@]}" --log-level off &
worker[1]=$!
for _ in $(seq 300); do grep -q event=serves_another "$log" && break; sleep 0.05; done
grep -q 'event=serves_another .*model=other' "$log" || fail "nobody noticed that another model answers"
curl -s "$url/readyz" | grep -q '"state":"ready"' && fail "another model is ready under this one's name"

# ---- what cannot be
refuses() { # WHY COMMAND...
    local why=$1
    shift
    timeout 20 "$@" >"$work/said" 2>&1 && fail "$* is taken"
    grep -qF -- "$why" "$work/said" || fail "$* says: $(cat "$work/said")"
}
refuses 'nothing is said there in clear text' "$SHOAL_BIN" worker --name m --model models/home-intent.gguf --address ':0'
refuses '--tls-cert needs --tls-key and --tls-ca' "$SHOAL_BIN" worker --name m --model models/home-intent.gguf --address ':0' --tls-cert "$work/worker.crt"
sed 's/ca: ca.crt/ca: none.crt/' "$work/c.yaml" >"$work/bad.yaml"
refuses 'discovery.tls.ca' "$SHOAL_BIN" config check "$work/bad.yaml"
sed 's/model: chat/model: talk/' "$work/c.yaml" >"$work/bad.yaml"
refuses "has the model 'chat'" "$SHOAL_BIN" config check "$work/bad.yaml"
sed 's/external: true/external: true, replicas: 2/' "$work/c.yaml" >"$work/bad.yaml"
refuses 'models[0].replicas' "$SHOAL_BIN" config check "$work/bad.yaml"
stop_shoal
[ "$stopped" = 0 ] || fail "exit $stopped"
echo "streams outlive workers that others start, certificates are renewed, strangers stay out"
