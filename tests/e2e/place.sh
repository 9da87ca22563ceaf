#!/usr/bin/env bash
# Two machines join without any model: the gateway places its model there, the file travels, they answer. One dies,
# one drains, one comes back, while streams run: every stream has the bytes of an undisturbed one, and some of them have
# moved. A third machine fetches the file from one that has it.
source "$(dirname "$0")/machines.bash"

workers_of() { pgrep -P "${agents[$1]}" -f 'shoal worker'; }

# What was said, without when, and how it ended. Each is computed for itself: equal ones in flight would be one.
stream() {
    local raw=$work/raw.$BASHPID status
    curl -s -m 200 -H "cache-control: no-cache" "$url/v1/chat/completions" -d "{\"model\":\"chat\",\"stream\":true,\"max_tokens\":${2:-400},\"temperature\":1,
        \"seed\":7,\"ignore_eos\":true,\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}]}" >"$raw"
    status=$?
    sed -n 's/.*"content":"\(\([^"\\]\|\\.\)*\)".*/\1/p' "$raw" | tr -d '\n'
    grep -o '"finish_reason":"[a-z_]*"\|\[DONE\]\|"error".*' "$raw"
    [ $status = 0 ] || echo "curl: exit $status"
}
# How many streams have gone on elsewhere, in all or for a cause.
moves() {
    curl -s "$url/metrics" | sed -n "s/^shoal_moves_total{cause=\"${1:-[a-z]*}\"} //p" | awk '{n += $1} END {print n + 0}'
}
# shellcheck disable=SC2329
has_calls() { # two at least, so that they do not end both before what is to meet them
    curl -s "$url/metrics" | grep "^shoal_worker_calls_in_flight{.*replica=\"$1\"" | grep -q ' [2-9]$'
}
# shellcheck disable=SC2329
nodes() { "$SHOAL_BIN" nodes --server "$url" --json; }
# shellcheck disable=SC2329
ready() { curl -s "$url/readyz" | grep -q "\"id\":\"$1\",\"model\":\"chat\",\"state\":\"ready\""; }
# shellcheck disable=SC2329
absent() { ! curl -s "$url/readyz" | grep -q "\"id\":\"$1\""; }
prompts=("turn on the kitchen light" "is the front door locked?" "make it warmer in the bedroom" "good night")

model=$PWD/models/home-chat-m.gguf
printf 'models: [{name: chat, max_batch: 2, path: %s}]\n' "$model" >"$work/alone.yaml"
start_shoal "$work/alone.yaml"
for i in "${!prompts[@]}"; do stream "${prompts[$i]}" >"$work/want.$i"; done
stream "tell me about lights" 1500 >"$work/want.long"
[ "$(wc -c <"$work/want.0")" -gt 400 ] || fail "alone: $(cat "$work/want.0")"
stop_shoal

make_ca
cat >"$work/c.yaml" <<YAML
cluster: {listen: "$control", name: boss, state: $gw}
cache: {mb: 0}
deadline_ms: 200000 # of a slow machine
models: [{name: chat, max_batch: 2, path: $model, replicas: 2, place: {nodes: [pi, attic, spare]}}]
YAML
start_shoal "$work/c.yaml"

# ---- they join, and serve what they did not have
began=$(date +%s%N)
join pi
until_true "pi has the model" ready pi/chat/0
first_ms=$((($(date +%s%N) - began) / 1000000))
join attic
until_true "attic has the model" ready attic/chat/0
# shellcheck disable=SC2329
has_one() { [ "$(workers_of "$1" | wc -l)" = 1 ]; }
until_true "pi has one worker" has_one pi # it had both replicas while it was alone
for node in pi attic; do
    [ "$(sha256sum "$work/$node/models/"*.gguf | cut -d' ' -f1)" = "$(sha256sum "$model" | cut -d' ' -f1)" ] ||
        fail "$node: $(ls -l "$work/$node/models")"
done

ask_on() {
    local n=0
    while [ ! -e "$work/enough" ]; do
        for i in "${!prompts[@]}"; do
            stream "${prompts[$i]}" >"$work/got"
            n=$((n + 1))
            cmp -s "$work/got" "$work/want.$i" || { cp "$work/got" "$work/bad"; echo "$i" >>"$work/bad"; }
            echo $n >"$work/asked"
        done
    done
}
# Long ones, so that each machine has one at most times.
ask_long() {
    while [ ! -e "$work/enough" ]; do
        stream "tell me about lights" 1500 >"$work/got.$1"
        cmp -s "$work/got.$1" "$work/want.long" || { cp "$work/got.$1" "$work/bad"; echo long >>"$work/bad"; }
    done
}
ask_on &
asking=($!)
for i in 1 2 3 4 5 6 7 8; do
    ask_long $i &
    asking+=($!)
done

# ---- a machine is gone: its replica is placed elsewhere
join spare
until_true "spare is attached" sh -c "'$SHOAL_BIN' nodes --server '$url' --json | grep -q '\"name\":\"spare\"'"
sleep 1
absent spare/chat/0 || fail "a third replica: $(curl -s "$url/readyz")"
workers=$(pgrep -P "${agents[attic]}" -f 'shoal worker')
until_true "attic has calls" has_calls attic/chat/0
# shellcheck disable=SC2086
kill -9 "${agents[attic]}" $workers
wait "${agents[attic]}" 2>/dev/null
until_true "spare takes over" ready spare/chat/0
grep -q 'component=store event=fetched.* from=pi' "$work/spare.log" || fail "not from pi: $(grep store "$work/spare.log")"
grep -q 'component=models event=sending' "$work/pi.log" || fail "pi sent nothing: $(grep models "$work/pi.log")"
# shellcheck disable=SC2329
have_moved() { [ "$(moves "$1")" -gt "$2" ]; }
until_true "attic's calls have moved" have_moved lost 0
absent attic/chat/0 || fail "attic is gone: $(curl -s "$url/readyz")"

# ---- back again: nothing moves
start_agent attic
until_true "attic is back" sh -c "'$SHOAL_BIN' nodes --server '$url' --json | grep -q '\"name\":\"attic\"'"
sleep 1.5
ready pi/chat/0 && ready spare/chat/0 || fail "it moved: $(curl -s "$url/readyz")"
pid=$(workers_of pi)

# ---- a machine drains: attic has the file still
before=$(moves)
until_true "spare has calls" has_calls spare/chat/0
"$SHOAL_BIN" node drain spare --server "$url" >/dev/null || fail "drain: $?"
until_true "attic takes over" ready attic/chat/0
until_true "spare is empty" absent spare/chat/0
until_true "spare's calls have moved" have_moved '[a-z]*' "$before"
moved=$(moves)
"$SHOAL_BIN" nodes --server "$url" --json | grep -q '"name":"spare"[^}]*"drains":true' || fail "nodes: $(nodes)"
"$SHOAL_BIN" node resume spare --server "$url" >/dev/null || fail "resume"
"$SHOAL_BIN" node drain nobody --server "$url" 2>"$work/err" && fail "nobody drains"
grep -q "no machine is called 'nobody'" "$work/err" || fail "$(cat "$work/err")"
[ "$(workers_of pi)" = "$pid" ] || fail "pi's worker was started again: $pid, then $(workers_of pi): $(tail -5 "$work/pi.log")"

# ---- the gateway goes and comes: workers are left alone
touch "$work/enough"
wait "${asking[@]}"
asking=()
[ ! -e "$work/bad" ] || fail "a stream differs: $(cat "$work/bad")"
asked=$(cat "$work/asked")
"$SHOAL_BIN" node drain spare --server "$url" >/dev/null || fail "drain: $?"
kill -9 "$server"
wait "$server" 2>/dev/null
[ "$(workers_of pi)" = "$pid" ] || fail "pi stopped its worker"
start_shoal "$work/c.yaml"
until_true "pi is back" ready pi/chat/0
until_true "attic is back" ready attic/chat/0
# shellcheck disable=SC2329
drains() { nodes | grep -q '"name":"spare"[^}]*"drains":true'; }
until_true "the new gateway knows that spare drains" drains
"$SHOAL_BIN" node resume spare --server "$url" >/dev/null || fail "resume"
sleep 1.5
[ "$(workers_of pi)" = "$pid" ] || fail "pi's worker was started again: $pid, then $(workers_of pi): $(tail -5 "$work/pi.log")"
stream "${prompts[0]}" | cmp -s - "$work/want.0" || fail "after the gateway came back"

# ---- out
"$SHOAL_BIN" node remove pi --server "$url" >/dev/null || fail "remove"
until_true "pi is out" absent pi/chat/0
until_true "spare takes over from pi" ready spare/chat/0
grep -q "was removed from the cluster" "$work/pi.log" || fail "pi was not told: $(tail -3 "$work/pi.log")"
kill -9 "$server"
wait "$server" 2>/dev/null
start_shoal "$work/c.yaml"
until_true "spare is back" ready spare/chat/0
nodes | grep -q '"name":"pi"' && fail "pi is back, though it was removed: $(nodes)"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "$asked short streams and more long ones, all the same, $moved moved over a death and a drain; $first_ms ms from joining to a ready replica, its file and token included"
