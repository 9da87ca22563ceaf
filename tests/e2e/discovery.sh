#!/usr/bin/env bash
# Workers that somebody else starts: at an address, and through DNS. They serve, go, and come back.
source "$(dirname "$0")/lib.sh"
dnsmasq=$(PATH=$PATH:/usr/sbin:/sbin command -v dnsmasq) || skip "dnsmasq is not installed (scripts/setup.sh --test)"
model=$PWD/tests/data/hf/bert-intent
worker= name_server=
stop_others() { [ -z "$worker" ] || kill -9 "$worker" 2>/dev/null; [ -z "$name_server" ] || kill "$name_server" 2>/dev/null; cleanup; }
trap stop_others EXIT

start_worker() {
    "$SHOAL_BIN" worker --name apart --model "$model" --address "$1" --log-level off &
    worker=$!
}
ask() { # never the same twice: answers are kept
    curl -s --max-time 30 "$url/v1/classify" -H 'content-type: application/json' \
        -d "{\"model\": \"$1\", \"input\": \"turn on light $(date +%s%N)\"}"
}
until_says() {
    for _ in $(seq 400); do
        reply=$(ask "$1")
        case $reply in *"$2"*) return ;; esac
        sleep 0.05
    done
    fail "$1 never said '$2': $reply; $(curl -s "$url/readyz")"
}

"$dnsmasq" --version >/dev/null || skip "dnsmasq does not run"
ns_port=$(free_port) tcp_port=$(free_port 1)
"$dnsmasq" --keep-in-foreground --no-resolv --no-hosts --bind-interfaces --listen-address=127.0.0.1 --user= --group= \
    --pid-file= --conf-file=/dev/null --port=$ns_port --local-ttl=1 \
    --srv-host=_far._tcp.test,localhost,$tcp_port &
name_server=$!
cat >"$work/c.yaml" <<CONFIG
manifest: $PWD/models/models.json
models: [{name: home-intent}]
discovery:
  workers:
    - {model: apart, address: "unix:$work/apart.sock"}
  dns:
    - {name: _far._tcp.test, model: far}
  dns_server: 127.0.0.1:$ns_port
CONFIG
start_worker "unix:$work/apart.sock"
start_shoal "$work/c.yaml"
until_says apart '"label"'
kill -9 "$worker"
wait "$worker" 2>/dev/null
rm -f "$work/apart.sock"
ask apart >"$work/waited" & # it waits for the worker to come back
waiting=$!
sleep 0.3
[ -s "$work/waited" ] && fail "a dead worker answered: $(cat "$work/waited")"
start_worker "unix:$work/apart.sock"
wait "$waiting"
grep -q '"label"' "$work/waited" || fail "no answer from the worker that came back: $(cat "$work/waited")"
kill -9 "$worker"
wait "$worker" 2>/dev/null

ask far >"$work/waited" &
waiting=$!
sleep 0.3
start_worker "127.0.0.1:$tcp_port"
wait "$waiting"
grep -q '"label"' "$work/waited" || fail "no answer through DNS: $(cat "$work/waited")"
curl -s "$url/readyz" | grep -qF '{"name":"dns","synced":true,"trouble":""}' || fail "$(curl -s "$url/readyz")"
kill "$name_server"
wait "$name_server" 2>/dev/null
name_server=
for _ in $(seq 200); do
    curl -s "$url/readyz" | grep -q '"trouble":"_far' && break
    sleep 0.05
done
curl -s "$url/readyz" | grep -q '"trouble":"_far._tcp.test: ' || fail "nobody said that DNS is away: $(curl -s "$url/readyz")"
until_says far '"label"' # from the last view
ask home-intent | grep -q '"label"' || fail "its own worker does not answer"
stop_shoal
[ "$stopped" = 0 ] || fail "exit $stopped"
kill -9 "$worker"
wait "$worker" 2>/dev/null
worker=

# ---- a list that is read again: a request waits for the first worker of a model, and a stream outlives the worker's row
listed() { # ROW...
    printf 'models: [{name: chat, external: true}]\ndiscovery: {workers: [' >"$work/l.yaml.new"
    printf '%s, ' "$@" | sed 's/, $//' >>"$work/l.yaml.new"
    echo ']}' >>"$work/l.yaml.new"
    mv "$work/l.yaml.new" "$work/l.yaml"
}
hup() {
    local before
    before=$(grep -c event=reloaded "$log")
    kill -HUP "$server"
    for _ in $(seq 400); do [ "$(grep -c event=reloaded "$log")" -gt "$before" ] && return; sleep 0.02; done
    fail "the list was not read: $(grep reload "$log")"
}
row() { echo "{model: chat, address: \"unix:$work/$1.sock\"}"; }
replicas() { curl -s "$url/v1/status" | grep -o '"state":"ready"' | wc -l; }
until_replicas() {
    for _ in $(seq 400); do [ "$(replicas)" = "$1" ] && return; sleep 0.05; done
    fail "$(replicas) replicas, not $1: $(curl -s "$url/v1/status")"
}
stream() { # FILE
    curl -sN -m 60 "$url/v1/chat/completions" -H 'cache-control: no-store' -d '{"model":"chat","stream":true,"temperature":1,"seed":3,"ignore_eos":true,"max_tokens":900,"messages":[{"role":"user","content":"tell me everything"}]}' >"$1"
}
said() { sed -n 's/^data: {.*"content":"\(.*\)"}.*/\1/p' "$1" | tr -d '\n'; }
listed "{model: chat}"
start_shoal "$work/l.yaml"
declare -A lister
for n in 1 2; do
    "$SHOAL_BIN" worker --name chat --model models/home-chat-m.gguf --address "unix:$work/$n.sock" --log-level off &
    lister[$n]=$!
done
stop_others() { kill -9 "${lister[@]}" 2>/dev/null; cleanup; }
stream "$work/first" &
waiting=$!
sleep 0.3
[ -s "$work/first" ] && fail "a model without workers answers: $(head -c 300 "$work/first")"
listed "$(row 1)"
hup
wait "$waiting"
grep -q 'data: \[DONE\]' "$work/first" || fail "no stream from the worker that was listed later: $(tail -c 300 "$work/first")"
: >"$work/second"
stream "$work/second" &
waiting=$!
for _ in $(seq 2000); do grep -q content "$work/second" && break; sleep 0.005; done
listed "$(row 2)"
hup
wait "$waiting"
grep -q 'data: \[DONE\]' "$work/second" || fail "a stream broke with its worker's row: $(tail -c 300 "$work/second")"
[ "$(said "$work/first")" = "$(said "$work/second")" ] || fail "a stream is another since its worker's row has gone"
until_replicas 1
curl -s "$url/v1/status" | grep -qF "$work/2.sock" || curl -s "$url/readyz" | grep -qF "$work/2.sock" || fail "not the second worker: $(curl -s "$url/readyz")"
listed "$(row 1)" "$(row 2)"
hup
until_replicas 2
listed "$(row 1)" "$(row 1)"
before=$(grep -c event=reload_refused "$log")
kill -HUP "$server"
for _ in $(seq 400); do [ "$(grep -c event=reload_refused "$log")" -gt "$before" ] && break; sleep 0.02; done
grep -q 'event=reload_refused.*discovery.workers' "$log" || fail "a row that is there twice is taken"
until_replicas 2
kill -9 "${lister[@]}"
wait "${lister[@]}" 2>/dev/null
stop_shoal
[ "$stopped" = 0 ] || fail "exit $stopped"
echo "workers from elsewhere serve, go and come back"
