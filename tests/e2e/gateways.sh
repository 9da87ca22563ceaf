#!/usr/bin/env bash
# Two gateways with the same models and one etcd, a machine attached to each: one of them leads and places for both,
# both show the same, and a model's layers are dealt out over machines of both. The lead goes from one to the other and back: no worker starts again, none is there twice.
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
    for g in a b; do "$SHOAL_BIN" nodes --server "${urls[$g]}"; curl -s "${urls[$g]}/readyz"; echo; done
    fail "$what: never came to pass: $(grep -h 'component=\(placement\|etcd\)' "$work"/*.log | tail -20)"
}
# gateway NAME: start it.
gateway() {
    local name=$1
    cat >"$work/$name.yaml" <<YAML
cluster: {listen: "${control[$name]}", name: $name, site: site-$name, state: $work/$name}
cache: {mb: 0}
manifest: $PWD/models/models.json
models:
  - {name: chat, path: $PWD/models/home-chat-s.gguf, replicas: 2, place: {nodes: [pi, kit]}}
  - {name: parted, path: $PWD/models/home-chat-m.gguf, shards: 2, place: {nodes: [pi, kit]}}
  - {name: home-intent}
discovery:
  etcd: {endpoints: ["127.0.0.1:$port0"], lease_s: 6}
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
urls=([a]=http://127.0.0.1:$(free_port) [b]=http://127.0.0.1:$(free_port 1))
control=([a]=127.0.0.1:$(free_port 2) [b]=127.0.0.1:$(free_port 3))
agent() {
    "$SHOAL_BIN" agent --state "$work/$1" --no-measure -l 127.0.0.1:0 --site "site-$2" "${@:3}" >"$work/$1.out" 2>>"$work/$1.log" &
    pids[$1]=$!
}
token() { "$SHOAL_BIN" token create --state "$work/a" "$@"; }
classify() { curl -s -m 20 "$1/v1/classify" -d '{"model":"home-intent","input":"turn off the kitchen light"}' | grep -q '"label"'; }
chats() {
    curl -s -m 20 "$1/v1/chat/completions" -d "{\"model\":\"${2:-chat}\",\"max_tokens\":4,\"messages\":[{\"role\":\"user\",
        \"content\":\"hi\"}]}" | grep -q '"content"'
}
# workers WHOM: those of a gateway or an agent, by what they serve and their process.
workers() { for p in $(pgrep -P "${pids[$1]}" -f "shoal worker"); do echo "$(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | sed -n 's/.*--name \([^ ]*\).*/\1/p') $p"; done; }
has_chat() { workers "$1" | grep -q '^chat '; }
# home-intent may be anywhere, and goes elsewhere when a gateway that has it is gone; the others are the machines' own.
n_intents() { for who in a b pi kit; do workers $who; done | grep -c '^home-intent'; }
machines_have() { { workers pi; workers kit; } | grep -v '^home-intent'; }
one_intent() { [ "$(n_intents)" = 1 ]; }
# leads GATEWAY: in its present life.
leads() { tac "$work/$1.log" | sed '/component=control event=listening/q' | grep -m 1 -E 'component=placement event=(leads|follows)' | grep -q event=leads; }
rows() { "$SHOAL_BIN" nodes --server "${urls[$1]}" | awk 'NR > 1 {print $1, $2, $3, $4}'; }
same_rows() { rows a >"$work/rows.a" && rows b >"$work/rows.b" && cmp -s "$work/rows.a" "$work/rows.b" && [ "$(wc -l <"$work/rows.a")" = 4 ]; }

# ---- a has the CA, b is another gateway; pi is attached to a, kit to b
"$SHOAL_BIN" ca init --state "$work/a" >/dev/null
gateway a
until_true "a leads" leads a
"$SHOAL_BIN" agent --state "$work/b" --join "${control[a]}" --token "$(token --role gateway --name b)" --name b >/dev/null || fail "b does not join"
gateway b
agent pi a --join "${control[a]}" --token "$(token --name pi)" --name pi
agent kit b --join "${control[a]}" --token "$(token --name kit)" --name kit
until_true "kit has joined" grep -q "^attached as kit" "$work/kit.out"
kill "${pids[kit]}"
wait "${pids[kit]}" 2>/dev/null
printf %s "${control[b]}" >"$work/kit/gateway"
agent kit b
until_true "pi serves chat" has_chat pi
until_true "kit serves chat, by a plan of a that b has passed on" has_chat kit
for g in a b; do
    until_true "$g chats" chats "${urls[$g]}"
    until_true "$g classifies" classify "${urls[$g]}"
done
until_true "home-intent is there once" one_intent
leads b && fail "two lead"

# ---- both show the same, and a drain that the leader is told is everybody's
until_true "both show the same" same_rows
grep -qx 'kit node site-b [0-9]*' "$work/rows.a" || fail "$(cat "$work/rows.a")"
"$SHOAL_BIN" node drain kit --server "${urls[b]}" 2>"$work/err" && fail "b was obeyed though a leads"
grep -q 'the gateway a places models now' "$work/err" || fail "$(cat "$work/err")"
"$SHOAL_BIN" node drain kit --server "${urls[a]}" >/dev/null || fail "drain"
drains() { rows a | grep -q '^kit drains' && rows b | grep -q '^kit drains'; }
until_true "both know that kit drains" drains
"$SHOAL_BIN" node resume kit --server "${urls[a]}" >/dev/null || fail "resume"
until_true "both know that it does not" same_rows
until_true "kit serves chat again" has_chat kit
one_each() { [ "$(workers pi | grep -c '^chat')" = 1 ] && [ "$(workers kit | grep -c '^chat')" = 1 ]; }
until_true "each has one" one_each
has_stage() { [ "$(workers "$1" | grep -c '^parted')" = 1 ]; }
stage_each() { has_stage pi && has_stage kit; }
until_true "each has a stage" stage_each
for g in a b; do until_true "$g asks the stages" chats "${urls[$g]}" parted; done
until_true "each has one stage" stage_each
before=$(machines_have)

# ---- the lead goes to b and stays there when a is back; to a again when b is killed
kill "${pids[a]}"
wait "${pids[a]}" 2>/dev/null
until_true "b leads" leads b
gateway a
same_workers() { [ "$(machines_have)" = "$before" ]; }
until_true "both show the same again" same_rows
until_true "home-intent is there once again" one_intent
leads a && fail "a leads again, though b does"
for g in a b; do
    until_true "$g chats again" chats "${urls[$g]}"
    until_true "$g asks the stages again" chats "${urls[$g]}" parted
done
sleep 4 # longer than a machine that is gone is waited for
same_workers || fail "a worker was started again: $before; now $(machines_have)"
kill -9 "${pids[b]}"
wait "${pids[b]}" 2>/dev/null
gateway b
one_leads() { leads a || leads b; }
until_true "a or b leads" one_leads
until_true "both show the same in the end" same_rows
until_true "home-intent is there once in the end" one_intent
sleep 4
same_workers || fail "a worker was started again: $before; now $(machines_have)"

# ---- etcd away: all goes on, and both say so
kill -STOP "${pids[etcd]}"
says_so() { "$SHOAL_BIN" nodes --server "${urls[$1]}" | grep -q '^etcd is away, this is what was last heard'; }
for g in a b; do
    until_true "$g says that etcd is away" says_so "$g"
    chats "${urls[$g]}" || fail "$g does not chat without etcd"
    "$SHOAL_BIN" top --once --url "${urls[$g]}" | grep -q 'etcd is away' || fail "top of $g does not say so"
done
sleep 4 # longer than the lease, with what it took to say that etcd is away
same_workers || fail "a worker was started again while etcd was away"
kill -CONT "${pids[etcd]}"
until_true "both show the same when etcd is back" same_rows
same_workers || fail "a worker was started again when etcd came back"
echo "one of two gateways places for both; the lead went from one to the other and back, and no worker started again"
