#!/usr/bin/env bash
# The fault lab: short forms of its scenarios, that it sees what is lost and what differs, and that nothing of it stays.
# early: its scenarios take minutes, which should not be the last ones
# long: minutes
source "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "the lab needs root"
[ -r /dev/net/tun ] && [ -w /dev/net/tun ] || skip "/dev/net/tun is not there"
unshare --net --pid --fork --mount true 2>/dev/null || skip "no namespaces may be made here"
out=$work/out

# lab SECONDS SCENARIO [ARGS...]: run it; sets $status, and $requests, $answered, $lost, $different of the last line.
n_runs=0
lab() {
    local seconds=$1 name=$2 line
    shift 2
    n_runs=$((n_runs + 1))
    "$SHOAL_BIN" lab run "$name" --seconds "$seconds" --json --out "$out" "$@" >"$work/line" 2>"$work/said"
    status=$?
    line=$(tail -1 "$work/line")
    [[ $line =~ ^\{\"requests\":([0-9]+),\"answered\":([0-9]+),\"lost\":([0-9]+),\"different\":([0-9]+),\"gap_p50_ms\":([0-9.]+|null),\"gap_p99_ms\":([0-9.]+|null),\"availability\":[01]\.[0-9]{6}\}$ ]] ||
        fail "$name ends with $status and \"$line\": $(tail -3 "$work/said")"
    requests=${BASH_REMATCH[1]} answered=${BASH_REMATCH[2]} lost=${BASH_REMATCH[3]} different=${BASH_REMATCH[4]}
    [ "$requests" -gt 0 ] && [ $((answered + lost)) -eq "$requests" ] || fail "$name does not add up: $line"
    [ "$(wc -l <"$out/requests.jsonl")" -eq "$requests" ] || fail "$name: not every request is in requests.jsonl"
    [ "$(grep -c '"fate":"lost"' "$out/requests.jsonl")" -eq "$lost" ] || fail "$name: $lost lost, but other fates"
    [ "$status" -eq $((lost + different > 0 ? 3 : 0)) ] || fail "$name ends with $status: $line"
    grep -q '</svg>' "$out/timeline.svg" || fail "$name drew no timeline"
}
struck() { [ "$(grep -c '"hit":true' "$out/faults.jsonl")" -ge "$1" ] || fail "too few faults: $(cat "$out/faults.jsonl")"; }
whole() { [ "$status" -eq 0 ] || fail "$1: $(cat "$out/report.txt")"; }

# ---- scenarios: where clients turn to another gateway, or only links suffer, nothing may be lost
lab 2.5 kill-every-2s; struck 1
lab 2.5 kill-replica; struck 1
lab 2 freeze; struck 1
lab 2 full-disk; struck 1
resumed() { grep -q '"resumed":[1-9]' "$out/report.json"; }
for _ in 1 2 3; do # it may fall when nobody has read an event of his stream yet
    lab 4.5 gateway-dies; struck 1; whole gateway-dies # back at 3 s: what waits for its models gets the same bytes
    resumed && break
done
resumed || fail "no client came back with Last-Event-ID: $(cat "$out/report.json")"
lab 2 rolling-drain; struck 1; whole rolling-drain
lab 2 partition; struck 1; whole partition
grep -qE ' [1-9][0-9]* cut off' "$out/report.txt" || fail "the cut let everything through: $(cat "$out/report.txt")"
lab 2 lossy-wifi; struck 1; whole lossy-wifi
grep -qE ' [1-9][0-9]* lost,.* cut off' "$out/report.txt" || fail "the lossy link lost nothing"
lab 6 storm; struck 3; whole storm # three workers, and a machine that falls silent at 4.5 s
lab 6 silences; struck 2; whole silences
came_back() { grep -h '^attached as' "$out"/logs/*.agent.log | sort | uniq -c | grep -q ' [2-9] attached as'; }
for seconds in 2.5 4.5 6.5; do # on a slow machine it is away for longer
    lab $seconds machines-join; struck 2; whole machines-join # tokens of one process in another's command line
    came_back && break
done
came_back || fail "no killed agent came back"
lab 2.5 sharded-kill; struck 1; whole sharded-kill
grep -qh 'event=stages_ready' "$out"/logs/*.agent.log || fail "no model was in stages"

lab 8 sharded-power; struck 1; whole sharded-power # the fault lasts to the twelfth second
grep -qh 'stage_left' "$out"/logs/*.agent.log || fail "no stage noticed that its first stage is gone"
# One that loses its power for good takes no call with it, though no second call is made of slow ones.
sed -e '/^faults:/,$d' -e 's/cluster: {listen: "{ip}:7080"}/&\n          hedge: off/' examples/lab/machine-vanishes.yaml >"$work/vanish.yaml"
echo 'faults: [{do: kill, of: node, node: north, silent: true, at_s: 2}]' >>"$work/vanish.yaml"
lab 6 "$work/vanish.yaml"; struck 1; whole machine-vanishes
lab 8 standby; struck 2; whole standby # the last fault lasts to the eighteenth second
grep -h 'event=placed' "$out/logs/boss.serve.log" | grep -q 'as a standby' || fail "the standby was not promoted"
grep -h 'event=leaves' "$out/logs/boss.serve.log" | grep 'fewer are wanted' && fail "a machine that returned moved something"
if command -v etcd >/dev/null; then # both gateways say that what they go on with is their last view
    lab 4.5 etcd-away; struck 2; whole etcd-away
    for node in north south; do
        grep -q 'component=source event=away source=etcd' "$out/logs/$node.serve.log" || fail "$node did not say that etcd is away"
    done
    if command -v redis-server >/dev/null; then
        lab 19 silent-peers; struck 3; whole silent-peers
    fi
    lab 4 two-sites; struck 4; whole two-sites
fi

# ---- what is lost is seen: the only gateway dies for good
cat >"$work/gone.yaml" <<'YAML'
name: gone
about: the only gateway dies and stays dead
seconds: 1
nodes:
  - name: home
    files:
      - {name: shoal.yaml, text: "models: [{name: home-chat-s}]\n"}
    start:
      - {role: serve, run: "shoal serve -c shoal.yaml --listen {ip}:8080", ready: "http://{ip}:8080/readyz"}
load:
  gateways: ["http://{ip.home}:8080"]
  clients: 2
  patience_ms: 3000
  requests:
    - name: chat
      path: /v1/chat/completions
      variants: 3
      body: '{"model": "home-chat-s", "stream": true, "temperature": 1, "seed": {n}, "ignore_eos": true, "max_tokens": 40, "messages": [{"role": "user", "content": "hello"}]}'
faults:
  - {do: kill, of: serve, at_s: 0.5}
YAML
lab 2 "$work/gone.yaml"
[ "$lost" -gt 0 ] || fail "the only gateway died and nothing was lost"

# ---- what differs is seen: a gateway that serves another model by the same name
sed -e '/^faults:/,$d' -e 's/name: gone/name: other/' -e 's/patience_ms: .*/patience_ms: 10000/' "$work/gone.yaml" >"$work/calm.yaml"
lab 0.5 "$work/calm.yaml"; whole calm
cp "$out/answers.jsonl" "$work/answers.jsonl"
lab 0.5 "$work/calm.yaml" --reference "$work/answers.jsonl"; whole "calm against itself"
sed 's|{name: home-chat-s}|{name: home-chat-s, path: {share}/models/home-chat-m.gguf}|' "$work/calm.yaml" >"$work/other.yaml"
lab 0.5 "$work/other.yaml" --reference "$work/answers.jsonl"
[ "$different" -eq "$answered" ] && [ "$different" -gt 0 ] || fail "another model gave $different different answers"
sed -E '1s/("content":"[^"]*)[a-z]/\1#/' "$work/answers.jsonl" >"$work/one.jsonl" # one byte of one answer
lab 0.5 "$work/calm.yaml" --reference "$work/one.jsonl"
[ "$different" -gt 0 ] && [ "$different" -lt "$answered" ] || fail "one changed byte: $different of $answered differ"
head -1 "$work/answers.jsonl" >"$work/few.jsonl"
"$SHOAL_BIN" lab run "$work/calm.yaml" --reference "$work/few.jsonl" --out "$out" >"$work/line" 2>"$work/said"
[ $? -eq 1 ] && grep -q 'has no answer to chat 2' "$work/said" || fail "too few references: $(tail -1 "$work/said")"

# ---- what cannot run says why
sed 's/shoal.yaml --listen/none.yaml --listen/' "$work/calm.yaml" >"$work/broken.yaml"
"$SHOAL_BIN" lab run "$work/broken.yaml" --out "$out" >"$work/line" 2>"$work/said"
[ $? -eq 1 ] && grep -q 'node home: serve ended with .*none.yaml' "$work/said" || fail "a node that cannot start: $(tail -1 "$work/said")"
setpriv --reuid=65534 "$SHOAL_BIN" lab run freeze --out "$out" >"$work/line" 2>"$work/said"
[ $? -eq 1 ] && grep -q 'needs root' "$work/said" || fail "without root: $(cat "$work/said")"

# ---- Ctrl-C ends the load, writes the report and leaves nothing; kill -9 leaves an empty folder that clean removes
# start_lab: a calm one of a minute in the background; sets $pid when its load has begun.
start_lab() {
    : >"$work/said" # what the last one said is none of this one's
    "$SHOAL_BIN" lab run "$work/calm.yaml" --seconds 60 --out "$out" >"$work/line" 2>"$work/said" &
    pid=$!
    for _ in $(seq 400); do grep -q 'run begins' "$work/said" && return; sleep 0.05; done
    fail "the lab did not begin: $(cat "$work/said")"
}
left() { pgrep -f "shoal-lab-$1/" >/dev/null || [ -e "/tmp/shoal-lab-$1" ]; }
start_lab
kill -INT $pid
wait $pid
[ $? -eq 130 ] && grep -q '(interrupted)' "$out/report.txt" || fail "Ctrl-C: $(tail -2 "$work/said")"
left $pid && fail "after Ctrl-C: $(pgrep -fa "shoal-lab-$pid/") $(ls -d /tmp/shoal-lab-$pid)"
start_lab
kill -9 $pid
wait $pid 2>/dev/null
for _ in $(seq 400); do pgrep -f "shoal-lab-$pid/" >/dev/null || break; sleep 0.05; done
pgrep -f "shoal-lab-$pid/" >/dev/null && fail "a process outlived the lab: $(pgrep -fa "shoal-lab-$pid/")"
"$SHOAL_BIN" lab clean >"$work/line"
grep -q "removed /tmp/shoal-lab-$pid" "$work/line" || fail "clean did not find what a killed lab left: $(cat "$work/line")"
left $pid && fail "clean left something"
echo "$n_runs runs of scenarios, losses and differences seen, nothing left behind"
