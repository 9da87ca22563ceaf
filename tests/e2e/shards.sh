#!/usr/bin/env bash
# One model over several workers and machines: the bytes of the whole one, over batches, deaths of stages, drains and
# machines that come and go; and what cannot be cut says so.
source "$(dirname "$0")/machines.bash"
model=$PWD/models/home-chat-m.gguf

# What was said, without when, and how it ended.
stream() {
    curl -s -m 60 "$url/v1/chat/completions" -d "{\"model\":\"chat\",\"stream\":true,\"max_tokens\":$2,\"temperature\":1,
        \"seed\":$1,\"ignore_eos\":true,\"messages\":[{\"role\":\"user\",\"content\":\"${prompts[$(($1 % 4))]}\"}]}" >"$3.raw"
    sed -n 's/.*"content":"\(\([^"\\]\|\\.\)*\)".*/\1/p' "$3.raw" | tr -d '\n' >"$3"
    grep -o '"finish_reason":"[a-z_]*"\|\[DONE\]\|"error".*' "$3.raw" >>"$3"
}
# batch NAME TOKENS: eight at once
batch() {
    local pids=()
    for i in $(seq 8); do stream "$i" "$2" "$work/$1.$i" & pids+=($!); done
    wait "${pids[@]}"
}
same() { for i in $(seq 8); do cmp -s "$work/want.$i" "$work/$1.$i" || fail "$1: stream $i differs: $(cat "$work/$1.$i")"; done; }
prompts=("turn on the kitchen light" "is the front door locked?" "make it warmer in the bedroom" "good night")
# shellcheck disable=SC2329
ready() { curl -s "$url/readyz" | grep -q "\"id\":\"$1\",\"model\":\"[^\"]*\",\"state\":\"ready\""; }
# shellcheck disable=SC2329
absent() { ! curl -s "$url/readyz" | grep -q "\"id\":\"$1\""; }
# pid_of ID: of a worker of the gateway's machine
pid_of() { curl -s "$url/readyz" | grep -o "\"id\":\"$1\"[^}]*" | sed 's/.*"pid":\([0-9]*\).*/\1/'; }

# ---- the whole one
printf 'cache: {mb: 0}\nmodels: [{name: chat, path: %s}]\n' "$model" >"$work/whole.yaml"
start_shoal "$work/whole.yaml"
batch want 200
[ "$(wc -c <"$work/want.1")" -gt 200 ] || fail "alone: $(cat "$work/want.1")"
stop_shoal

# ---- on one machine alone
printf 'cache: {mb: 0}\nmodels: [{name: chat, path: %s, shards: 2}]\n' "$model" >"$work/two.yaml"
start_shoal "$work/two.yaml"
first=$(curl -s "$url/readyz" | grep -o 'chat@0:[0-9]*/0')
later=$(curl -s "$url/readyz" | grep -o 'chat@[1-9]*:8/0' | head -1)
[ -n "$first" ] && [ -n "$later" ] || fail "no two stages: $(curl -s "$url/readyz")"
[ "$(curl -s "$url/v1/models" | grep -o '"id":"[^"]*"')" = '"id":"chat"' ] || fail "models: $(curl -s "$url/v1/models")"
curl -s "$url/v1/chat/completions" -d "{\"model\":\"${later%/0}\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}" |
    grep -q model_not_found || fail "a stage answered by itself"
batch two 200
same two
for who in "$later" "$first"; do
    batch "killed" 200 &
    running=$!
    until_true "streams run" sh -c "[ \$(cat $work/killed.*.raw 2>/dev/null | wc -c) -gt 3000 ]"
    kill -9 "$(pid_of "$who")"
    wait $running
    same killed
    rm -f "$work"/killed.*
done
grep -q "event=stage_lost" "$log" || fail "no stage was lost"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"

# ---- over two machines: the gateway's own has no relay, so it would come first; here it has none
make_ca
cat >"$work/c.yaml" <<YAML
cluster: {listen: "$control", name: boss, state: $gw}
cache: {mb: 0}
models: [{name: chat, path: $model, shards: 2, place: {nodes: [pi, attic, spare]}}]
YAML
start_shoal "$work/c.yaml"
first_ready() { curl -s "$url/readyz" | grep -q '"id":"[a-z]*/chat@0:[0-9]*/0","model":"chat","state":"ready"'; }
on() { curl -s "$url/readyz" | grep -q "\"id\":\"$1/chat@[0-9:]*/0\""; }
join pi
until_true "pi has all stages" first_ready
[ "$(curl -s "$url/readyz" | grep -o '"id":"pi/chat@[0-9:]*/0"' | wc -l)" = 2 ] || fail "pi: $(curl -s "$url/readyz")"
batch pi 200
same pi
join attic
until_true "attic has a stage" on attic
until_true "the new chain answers" sh -c "curl -s '$url/readyz' | grep -o '\"id\":\"[a-z]*/chat@[0-9:]*/0\"' | wc -l | grep -qx 2"
until_true "the new chain answers" first_ready
batch both 200
same both
[ "$(curl -s "$url/readyz" | grep -o '"id":"pi/chat@[0-9:]*/0"' | wc -l)" = 1 ] || fail "shared: $(curl -s "$url/readyz")"

# ---- what it costs, by what these machines say of themselves
"$SHOAL_BIN" plan "$work/c.yaml" --server "$url" --json >"$work/plan" 2>"$work/plan.err" || fail "plan: $(cat "$work/plan" "$work/plan.err")"
grep -q "models\[0\].place.nodes\[2\]: there is no node 'spare'" "$work/plan.err" || fail "spare is not there, and nobody said so: $(cat "$work/plan.err")"
grep -q '"shards":\[{"model":"chat","token_ms":[0-9.]*,.*"hops":1,.*"name":"boss"' "$work/plan" || fail "plan: $(cat "$work/plan")"

# ---- while streams run: a stage's process dies, a machine dies with its stage, another one drains
ask_on() {
    local n=0
    while [ ! -e "$work/enough" ]; do
        batch on 200
        for i in $(seq 8); do
            cmp -s "$work/want.$i" "$work/on.$i" || { cp "$work/on.$i" "$work/bad"; cp "$work/on.$i.raw" "$work/bad.raw"; echo "$i" >>"$work/bad"; }
        done
        n=$((n + 8))
        echo $n >"$work/asked.new"
        mv "$work/asked.new" "$work/asked"
    done
}
asked_more() { [ "$(cat "$work/asked" 2>/dev/null || echo 0)" -gt "$1" ]; }
ask_on &
asking=($!)
until_true "streams run" asked_more 8
for node in pi attic; do
    pkill -9 -P "${agents[$node]}" || fail "$node has no worker"
    until_true "the chain is whole again after $node's worker died" first_ready
    now=$(cat "$work/asked")
    until_true "streams end after $node's worker died" asked_more $((now + 8))
done
join spare
until_true "spare is attached" sh -c "'$SHOAL_BIN' nodes --server '$url' --json | grep -q '\"name\":\"spare\"'"

# ---- a machine that has no first stage may call no stage of another
later=$(curl -s "$url/readyz" | grep -o '"id":"[a-z]*/chat@[1-9]:8/0"' | cut -d'"' -f4)
holder=${later%%/*}
port=$("$SHOAL_BIN" nodes --server "$url" --json | grep -o "\"name\":\"$holder\"[^}]*" | sed 's/.*"address":"[^"]*:\([0-9]*\)".*/\1/')
part=${later#*@}
"$SHOAL_BIN" worker --name chat --model "$model" --address "unix:$work/thief.sock" --layers "0:${part%%:*}" \
    --stage "relay:127.0.0.1:$port/$later" --member "$work/spare" >"$work/thief" 2>&1 &
thief=$!
until_true "the foreign stage is refused" grep -q "only gateways, and first stages" "$work/$holder.log"
kill -0 "$thief" 2>/dev/null || fail "the foreign stage did not wait: $(cat "$work/thief")"
kill -9 "$thief"
wait "$thief" 2>/dev/null
[ ! -e "$work/thief.sock" ] || fail "the foreign stage serves"

workers=$(pgrep -P "${agents[attic]}" -f 'shoal worker')
# shellcheck disable=SC2086
kill -9 "${agents[attic]}" $workers
wait "${agents[attic]}" 2>/dev/null
until_true "spare takes over" on spare
now=$(cat "$work/asked")
until_true "streams end after attic died" asked_more $((now + 8))
"$SHOAL_BIN" node drain spare --server "$url" >/dev/null || fail "drain: $?"
sleep 1
start_agent attic
until_true "attic takes over from spare" on attic
until_true "spare is empty" sh -c "! curl -s '$url/readyz' | grep -q '\"id\":\"spare/'"
now=$(cat "$work/asked")
until_true "streams end after the drain" asked_more $((now + 8))
touch "$work/enough"
wait "${asking[@]}"
asking=()
[ ! -e "$work/bad" ] || fail "a stream differs: $(cat "$work/bad")"

# ---- the gateway goes and comes: it finds the stages as they are
chain() { pgrep -P "${agents[pi]}" -f 'shoal worker'; pgrep -P "${agents[attic]}" -f 'shoal worker'; }
before=$(chain)
kill -9 "$server"
wait "$server" 2>/dev/null
start_shoal "$work/c.yaml"
until_true "the chain is back" first_ready
batch again 200
same again
sleep 3.5
[ "$(chain)" = "$before" ] || fail "the gateway's return moved stages: $before, $(chain)"
batch later 200
same later
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "$(cat "$work/asked") streams over two machines, all the same, over deaths of stages and machines and a drain"
