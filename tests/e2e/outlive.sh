#!/usr/bin/env bash
# Machines outlive their gateway: two gateways with one etcd, both machines attached to the one that is killed for
# good. They go on at the other, streams that run through it notice nothing, and it places models on them. The first
# comes back to a cluster that goes on; the second is killed, and they go there.
source "$(dirname "$0")/lib.sh"
etcd=$(command -v etcd) || skip "etcd is not installed (scripts/setup.sh --test)"
declare -A pids=() urls=() control=()
end_all() {
    end "${pids[@]}"
    cleanup
}
trap end_all EXIT
port0=$(free_port 6) peer0=$(free_port 7)
"$etcd" --name one --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$port0" \
    --advertise-client-urls "http://127.0.0.1:$port0" --listen-peer-urls "http://127.0.0.1:$peer0" \
    --initial-advertise-peer-urls "http://127.0.0.1:$peer0" --initial-cluster "one=http://127.0.0.1:$peer0" \
    >"$work/etcd.log" 2>&1 &
pids[etcd]=$!

until_true() {
    local what=$1
    shift
    for _ in $(seq 800); do
        "$@" && return 0
        sleep 0.05
    done
    fail "$what: never came to pass: $(tail -n 8 "$work"/{a,b,pi,kit}.log)"
}
gateway() { # NAME [MODEL]
    local name=$1 models="
  - {name: chat, path: $PWD/models/home-chat-s.gguf, replicas: 2, place: {nodes: [pi, kit]}}
  - {name: home-intent, place: {nodes: [pi, kit]}}"
    cat >"$work/$name.yaml" <<YAML
cluster: {listen: "${control[$name]}", name: $name, state: $work/$name}
cache: {mb: 0}
manifest: $PWD/models/models.json
models: ${2:-$models}
discovery:
  etcd: {endpoints: ["127.0.0.1:$port0"], lease_s: 3}
YAML
    "$SHOAL_BIN" serve -c "$work/$name.yaml" --port "${urls[$name]##*:}" >"$work/$name.out" 2>>"$work/$name.log" &
    pids[$name]=$!
    for _ in $(seq 400); do
        curl -s "${urls[$name]}/healthz" | grep -q ok && return
        kill -0 "${pids[$name]}" 2>/dev/null || fail "$name ended: $(tail -3 "$work/$name.log")"
        sleep 0.05
    done
    fail "$name does not listen"
}
urls=([a]=http://127.0.0.1:$(free_port) [b]=http://127.0.0.1:$(free_port 1) [c]=http://127.0.0.1:$(free_port 2))
control=([a]=127.0.0.1:$(free_port 3) [b]=127.0.0.1:$(free_port 4) [c]=127.0.0.1:$(free_port 5))
agent() {
    "$SHOAL_BIN" agent --state "$work/$1" --no-measure -l 127.0.0.1:0 "${@:2}" >"$work/$1.out" 2>>"$work/$1.log" &
    pids[$1]=$!
}
kill_for_good() {
    kill -9 "${pids[$1]}"
    wait "${pids[$1]}" 2>/dev/null
    unset "pids[$1]"
}
token() { "$SHOAL_BIN" token create --state "$work/a" "$@"; }
workers() { for p in $(pgrep -P "${pids[$1]}" -f "shoal worker"); do echo "$(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | sed -n 's/.*--name \([^ ]*\).*/\1/p') $p"; done | sort; }
has() { workers "$1" | grep -q "^$2 "; }
lacks() { ! has "$1" "$2"; }
attached_to() { sed -n 's/.*component=attach event=\(attached\|detached\).* gateway=\([^ ]*\).*/\1 \2/p' "$work/$1.log" | tail -1 | grep -qx "attached $2"; }
leads() { tac "$work/$1.log" | sed '/component=control event=listening/q' | grep -m 1 -E 'component=placement event=(leads|follows)' | grep -q event=leads; }
names() { "$SHOAL_BIN" nodes --server "${urls[$1]}" | awk 'NR > 1 && $2 == "node" {print $1}' | sort | paste -sd' '; }
shows_both() { [ "$(names "$1")" = "kit pi" ]; }
classify() { curl -s -m 20 "$1/v1/classify" -d '{"model":"home-intent","input":"turn off the kitchen light"}' | grep -q '"label"'; }
# told URL SEED: a long answer, event by event
told() {
    curl -sN -m 120 "$1/v1/chat/completions" -d "{\"model\":\"chat\",\"stream\":true,\"max_tokens\":1500,\"temperature\":0.7,
        \"seed\":$2,\"messages\":[{\"role\":\"user\",\"content\":\"say a lot about lights\"}]}"
}
text_of() { grep -o '"delta":{[^}]*}' "$1" | sed -n 's/.*"content":"\(.*\)"}$/\1/p' | tr -d '\n'; }

# ---- a has the CA, b follows it; both machines are attached to a, and know of b from a alone
"$SHOAL_BIN" ca init --state "$work/a" >/dev/null
gateway a
until_true "a leads" leads a
"$SHOAL_BIN" agent --state "$work/b" --join "${control[a]}" --token "$(token --role gateway --name b)" --name b >/dev/null || fail "b does not join"
gateway b
# c has other models: it would place those, so that it is no refuge
"$SHOAL_BIN" agent --state "$work/c" --join "${control[a]}" --token "$(token --role gateway --name c)" --name c >/dev/null || fail "c does not join"
gateway c "[{name: home-embed}]"
for n in pi kit; do agent $n --join "${control[a]}" --token "$(token --name $n)" --name $n; done
for n in pi kit; do
    until_true "$n is attached to a" attached_to $n a
    until_true "$n serves chat" has $n chat
    until_true "$n has heard of b" grep -qx "b ${control[b]}" "$work/$n/gateways"
done
intents() { { workers pi; workers kit; } | grep -c '^home-intent '; }
one_intent() { [ "$(intents)" = 1 ]; }
until_true "home-intent is there once" one_intent
n_chats() { workers "$1" | grep -c "^chat "; }
each_chats() { [ "$(n_chats pi)" = 1 ] && [ "$(n_chats kit)" = 1 ]; }
until_true "each serves chat once" each_chats # the first to come had both, until the other was ready
for g in a b; do
    until_true "$g classifies" classify "${urls[$g]}"
    until_true "$g shows both" shows_both $g
done
before=$(workers pi; workers kit)

# ---- what the streams would say, and then a is killed under them
seeds="1 2 3 4"
for s in $seeds; do told "${urls[b]}" "$s" >"$work/calm.$s"; done
for s in $seeds; do
    told "${urls[b]}" "$s" >"$work/storm.$s" &
    pids[stream$s]=$!
done
( while :; do names b; sleep 0.1; done >"$work/seen" 2>/dev/null ) &
pids[watch]=$!
until_true "the streams run" test -s "$work/storm.4"
kill_for_good a
for n in pi kit; do
    until_true "$n is attached to b" attached_to $n b
    ! grep -q '^c ' "$work/$n/gateways" || fail "$n was told of c"
done
for s in $seeds; do
    wait "${pids[stream$s]}" || fail "stream $s ended with $?"
    grep -q DONE "$work/storm.$s" || fail "stream $s was cut: $(tail -2 "$work/storm.$s")"
    [ "$(text_of "$work/storm.$s")" = "$(text_of "$work/calm.$s")" ] || fail "stream $s says something else"
    [ -n "$(text_of "$work/storm.$s")" ] || fail "stream $s says nothing"
done
until_true "b leads" leads b
sleep 8 # longer than a's lease, and than a machine that is gone is waited for
shows_both b || fail "b shows $(names b)"
[ "$(sort -u "$work/seen")" = "kit pi" ] || fail "b lost a machine: $(sort "$work/seen" | uniq -c)"
[ "$(workers pi; workers kit)" = "$before" ] || fail "a worker was started again: $before; now $(workers pi; workers kit)"
! grep -Eq 'event=node_gone node=(pi|kit)' "$work/b.log" || fail "b gave a machine up"
moved=$(curl -s "${urls[b]}/metrics" | sed -n 's/^shoal_moves_total{cause="lost"} //p')
[ "${moved:-0}" = 0 ] || fail "$moved streams were moved"

# ---- b places: the only worker of home-intent goes to the other machine
had=pi other=kit
has pi home-intent || { had=kit; other=pi; }
"$SHOAL_BIN" node drain $had --server "${urls[b]}" >/dev/null || fail "drain"
until_true "$other has home-intent now" has $other home-intent
until_true "$had has it no more" lacks $had home-intent
moved_over() { [ "$(n_chats $had)" = 0 ] && [ "$(n_chats $other)" = 2 ]; }
until_true "$other has all of chat" moved_over
until_true "b classifies with it" classify "${urls[b]}"
"$SHOAL_BIN" node resume $had --server "${urls[b]}" >/dev/null || fail "resume"
until_true "each serves chat again" each_chats

# ---- a comes back: it sees what there is, and nothing is started because of that
before=$(workers pi; workers kit)
gateway a
until_true "a shows both" shows_both a
until_true "a classifies" classify "${urls[a]}"
sleep 4
for n in pi kit; do attached_to $n b || fail "$n went back though it need not"; done
[ "$(workers pi; workers kit)" = "$before" ] || fail "a worker was started again: $before; now $(workers pi; workers kit)"
leads b || fail "the lead went back"

# ---- and now b dies for good
told "${urls[a]}" 1 >"$work/storm.a" &
pids[stream]=$!
until_true "the stream runs" test -s "$work/storm.a"
kill_for_good b
for n in pi kit; do until_true "$n is attached to a" attached_to $n a; done
wait "${pids[stream]}" || fail "the stream ended with $?"
[ "$(text_of "$work/storm.a")" = "$(text_of "$work/calm.1")" ] || fail "the stream says something else"
until_true "a leads" leads a
sleep 4
shows_both a || fail "a shows $(names a)"
[ "$(workers pi; workers kit)" = "$before" ] || fail "a worker was started again: $before; now $(workers pi; workers kit)"
echo "two machines outlived one gateway and then the other; no stream and no worker noticed"
