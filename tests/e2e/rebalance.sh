#!/usr/bin/env bash
# A machine that joins relieves a busy one of models that say so; one that comes back moves nothing; a person's word
# moves others. More and fewer replicas after SIGHUP. All the while requests are answered.
source "$(dirname "$0")/machines.bash"
clues() { echo "$(curl -s "$url/v1/placement"); $(grep component=placement "$log" | tail -12)"; }
seats() { curl -s "$url/v1/placement" | grep -o '"now":\[[^]]*\]'; }
# shellcheck disable=SC2329
on() { seats | grep -o "\"node\":\"$1\"" | wc -l | grep -qx "$2" && curl -s "$url/v1/placement" | grep -q '"leaving":\[\]'; }
# shellcheck disable=SC2329
balanced() { [ "$(grep -c 'component=placement event=balanced' "$log")" -ge "$1" ]; }

make_ca
conf() {
    cat <<YAML
manifest: $PWD/models/models.json
cluster: {listen: "$control", name: boss, state: $gw}
cache: {mb: 0}
models:
  - {name: home-intent, kv_mb: 1000, place: {rebalance: $1}}
  - {name: home-embed, kv_mb: 1000, place: {rebalance: $1}}
  - {name: home-chat-s, kv_mb: 1000, place: {rebalance: $1}, replicas: $2}
  - {name: home-slots, kv_mb: 1000, place: {rebalance: $1}}
  - {name: home-chat-m, place: {labels: [nowhere]}} # no machine may have it: the others move nevertheless
YAML
}
conf true 1 >"$work/c.yaml"
start_shoal "$work/c.yaml"
until_true "all are on the gateway" on boss 4
ask_on() {
    while [ ! -e "$work/enough" ]; do
        curl -s -m 100 -o "$work/a" -w '%{http_code}' "$url/v1/classify" -d '{"model":"home-intent","input":"hello"}' | grep -qx 200 || cat "$work/a" >>"$work/bad"
        curl -s -m 100 -o "$work/a" -w '%{http_code}' "$url/v1/embeddings" -d '{"model":"home-embed","input":"hello"}' | grep -qx 200 || cat "$work/a" >>"$work/bad"
    done
}
ask_on &
asking=($!)
join pi
until_true "pi has half of them" on pi 2
until_true "it ends" balanced 1
grep -c 'event=placed .*node=pi .*why="it relieves a busier node"' "$log" | grep -qx 2 || fail "moves: $(grep component=placement "$log")"

# ---- one that comes back moves nothing
end_agent pi
until_true "the gateway has all again" on boss 4
start_agent pi
until_true "pi is back" sh -c "curl -s '$url/v1/placement' | grep -q '\"name\":\"pi\"'"
n=$(grep -c 'component=placement event=placed' "$log")
on boss 4 || fail "something moved: $(seats)"

# ---- a person says so
"$SHOAL_BIN" node rebalance --server "$url" >"$work/out" || fail "rebalance: $(cat "$work/out")"
until_true "pi has half of them again" on pi 2
grep 'component=placement event=placed' "$log" | tail -n "+$((n + 1))" | grep -v 'why="it relieves a busier node"' && fail "something moved before"

# ---- a drained machine without replicas keeps nobody waiting: by a person's word, and when another one joins
n=$(grep -c 'component=placement event=balanced' "$log")
"$SHOAL_BIN" node drain pi --server "$url" >"$work/out" || fail "drain: $(cat "$work/out")"
"$SHOAL_BIN" node rebalance --server "$url" >"$work/out" || fail "rebalance: $(cat "$work/out")"
until_true "the gateway has all while pi drains" on boss 4
until_true "the word of a person ends beside a drained machine" balanced $((n + 1))
grep -q 'event=rebalance_waits until="replicas come or go"' "$log" || fail "it is not said that it waits"
join nas
until_true "another machine relieves the gateway, beside a drained one" on nas 2
until_true "that ends, too" balanced $((n + 2))
"$SHOAL_BIN" node resume pi --server "$url" >"$work/out" || fail "resume: $(cat "$work/out")"

# ---- more and fewer replicas
conf true 2 >"$work/c.yaml"
kill -HUP "$server"
until_true "there is one more" sh -c "curl -s '$url/readyz' | grep -o '\"model\":\"home-chat-s\",\"state\":\"ready\"' | wc -l | grep -qx 2"
grep -q 'event=changed key="\?models\[home-chat-s\].replicas"\? from=1 to=2' "$log" || fail "it is not said: $(grep component=serve "$log" | tail -3)"
conf true 1 >"$work/c.yaml"
kill -HUP "$server"
until_true "there is one less" sh -c "curl -s '$url/readyz' | grep -o '\"model\":\"home-chat-s\"' | wc -l | grep -qx 1"
sed -i '/home-embed/s/}$/, standby: 1}/' "$work/c.yaml"
kill -HUP "$server"
until_true "there is a standby" sh -c "curl -s '$url/readyz' | grep -q '\"model\":\"home-embed\",\"state\":\"standby\",\"reason\":\"\",\"standby\":true,\"stands_in\":false'"
touch "$work/enough"
wait "${asking[@]}"
asking=()
[ ! -e "$work/bad" ] || fail "requests failed: $(head -c 600 "$work/bad")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"

# ---- a model whose only machine is away: a person's word does not wait for that
conf false 1 >"$work/c.yaml"
echo "  - {name: away, path: $PWD/models/home-slots.gguf, place: {nodes: [absent]}}" >>"$work/c.yaml"
start_shoal "$work/c.yaml"
until_true "the machines are back" sh -c "curl -s '$url/v1/placement' | grep -q '\"name\":\"pi\".*\"name\":\"nas\"\|\"name\":\"nas\".*\"name\":\"pi\"'"
"$SHOAL_BIN" node rebalance --server "$url" >"$work/out" || fail "rebalance: $(cat "$work/out")"
until_true "the word of a person ends beside a missing model" balanced 1
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
printf 'models: [{name: alone, path: %s, threads: 1}]\n' "$PWD/models/home-intent.gguf" >"$work/alone.yaml"
start_shoal "$work/alone.yaml"
sed -i 's/threads: 1/threads: 1, replicas: 3/' "$work/alone.yaml"
kill -HUP "$server"
until_true "three here" sh -c "curl -s '$url/readyz' | grep -o '\"model\":\"alone\",\"state\":\"ready\"' | wc -l | grep -qx 3"
"$SHOAL_BIN" node rebalance --server "$url" 2>"$work/err" && fail "it rebalances alone"
grep -q "no port for other machines" "$work/err" || fail "$(cat "$work/err")"
stop_shoal
echo "two of four models moved to a machine that joined, and back by a person's word; replicas follow SIGHUP"
