#!/usr/bin/env bash
# Two machines on one switch, as network namespaces: the second joins the first over it and answers for a model that
# only it has. The wire is cut until the gateway gives the machine up, and healed; then it is cut one way. The machine
# comes back by itself, and what was asked meanwhile is answered, with the same bytes.
source "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "namespaces need root"
[ -r /dev/net/tun ] && [ -w /dev/net/tun ] || skip "/dev/net/tun is not there"
unshare --net --pid --fork --mount true 2>/dev/null || skip "no namespaces may be made here"
out=$work/out

cat >"$work/two.yaml" <<'YAML'
name: two-machines
about: a second machine joins over a switch; its wire is cut and healed
seconds: 11
nodes:
  - name: boss
    files:
      - name: shoal.yaml
        text: |
          cluster: {listen: "{ip}:7080"}
          cache: {mb: 0}
          models: [{name: home-embed}]
    start:
      - {role: ca, run: "shoal ca init --cluster two", once: true, first: true}
      - {role: token, run: "shoal token create --name kitchen", once: true, first: true}
      - {role: serve, run: "shoal serve -c shoal.yaml --listen {ip}:8080", ready: "http://{ip}:8080/readyz"}
  - name: kitchen
    files:
      - {name: shoal.yaml, text: "models: [{name: home-intent}, {name: home-chat-s}]\n"}
    start:
      - role: agent
        run: shoal agent --no-measure -c shoal.yaml --join {ip.boss}:7080 --token {out.token}
        ready: http://{ip.boss}:8080/v1/models/home-intent
links:
  - {between: [boss, kitchen], delay_ms: 1, jitter_ms: 0.5}
load:
  gateways: ["http://{ip.boss}:8080"]
  clients: 3
  attempts: 100
  patience_ms: 60000
  requests:
    - name: far
      variants: 4
      path: /v1/classify
      body: '{"model": "home-intent", "input": "turn on light {n}"}'
    - name: far-stream
      variants: 4
      path: /v1/chat/completions
      body: '{"model": "home-chat-s", "stream": true, "temperature": 1, "seed": {n}, "ignore_eos": true, "max_tokens": 120, "messages": [{"role": "user", "content": "what is in room {n}?"}]}'
    - name: here
      variants: 2
      path: /v1/embeddings
      body: '{"model": "home-embed", "input": "good morning {n}"}'
faults:
  - {do: cut, between: [boss, kitchen], at_s: 1, for_s: 6.5}
  - {do: cut, between: [kitchen, boss], one_way: true, at_s: 9, for_s: 1}
YAML

"$SHOAL_BIN" lab run "$work/two.yaml" --json --out "$out" >"$work/line" 2>"$work/said"
status=$?
[ $status -eq 0 ] || fail "exit status $status: $(tail -3 "$work/said"; cat "$out/report.txt" 2>/dev/null)"
grep -q 'node kitchen .* is up after' "$work/said" || fail "the second machine never answered: $(cat "$work/said")"
grep -q '^attached as kitchen to boss' "$out/logs/kitchen.agent.log" || fail "it did not join: $(cat "$out/logs/kitchen.agent.log")"
grep -qE ' [1-9][0-9]* cut off' "$out/report.txt" || fail "the cut let everything through: $(cat "$out/report.txt")"
last() { grep '"request":"far' "$out/requests.jsonl" | grep -o '"end_ms":[0-9]*' | cut -d: -f2 | sort -n | tail -1; }
waited() { # a request for the far machine was under way for MS or longer
    grep '"request":"far' "$out/requests.jsonl" | sed 's/.*"start_ms":\([0-9.]*\),"end_ms":\([0-9.]*\).*/\1 \2/' |
        awk -v ms="$1" '$2 - $1 >= ms { found = 1 } END { exit !found }'
}
waited 5000 || fail "nothing waited for the machine that was cut off: $(cat "$out/report.txt")"
[ "$(last)" -gt 7500 ] || fail "the machine did not come back: $(cat "$out/report.txt")"
grep -q 'event=node_detached node=kitchen' "$out/logs/boss.serve.log" || fail "the gateway did not notice: $(tail -5 "$out/logs/boss.serve.log")"
[ "$(grep -c 'event=node_attached node=kitchen' "$out/logs/boss.serve.log")" -ge 2 ] || fail "it did not attach again: $(tail -5 "$out/logs/boss.serve.log")"
echo "joined over a switch, cut, healed: $(tail -1 "$work/line")"
