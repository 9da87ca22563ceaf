#!/usr/bin/env bash
# early: it installs packages and keeps a core busy.
# A pipeline's model calls tools of MCP servers made with the official SDKs of PyPI and npm, over HTTP and as programs: what
# was allowed and offered is called, with arguments of its schema, and nothing else; and servers that are slow, killed, gone,
# too long or changed fail the request with a sentence that names them.
# long: packages of PyPI and npm
source "$(dirname "$0")/lib.sh"
npm_clients
venv=$(scripts/python_clients.sh 2>"$work/install") || skip "Python clients: $(tail -1 "$work/install")"
export SHOAL_STATE=$work/state
cp tests/node/mcp_server.mjs "$modules/"
py=$(free_port 1) js=$(free_port 2) slow=$(free_port 3) huge=$(free_port 4) gone=$(free_port 5)
"$venv/bin/python" tests/python/mcp_server.py "$py" "$work/py.log" 2>"$work/py.err" & servers=($!)
MCP_MODE=slow "$venv/bin/python" tests/python/mcp_server.py "$slow" "$work/slow.log" 2>/dev/null & servers+=($!)
MCP_MODE=huge "$venv/bin/python" tests/python/mcp_server.py "$huge" "$work/huge.log" 2>/dev/null & servers+=($!)
(cd "$modules" && exec node mcp_server.mjs "$js" "$work/js.log") 2>"$work/js.err" & servers+=($!)
trap 'end "${servers[@]}"; cleanup' EXIT
echo secret-of-a-file >"$work/token"
# pipe NAME SERVER [KEYS]: a pipeline with one stage that calls its tools
pipe() { echo "  - {name: $1, stages: [{name: act, kind: generate, model: home-chat-s, prompt: \"{input}\", max_tokens: 60, tool_choice: required, mcp: [$2]${3:+, $3}}]}"; }
{
    cat <<END
manifest: $PWD/models/models.json
models: [{name: home-chat-s}]
mcp_servers:
  - {name: py, url: "http://127.0.0.1:$py/mcp", tools: [switch_light], headers: [{name: authorization, file: token}], timeout_ms: 60000}
  - {name: js, url: "http://127.0.0.1:$js/mcp", tools: [switch_light], timeout_ms: 60000}
  - {name: slow, url: "http://127.0.0.1:$slow/mcp", tools: [switch_light], timeout_ms: 1500}
  - {name: huge, url: "http://127.0.0.1:$huge/mcp", tools: [switch_light], timeout_ms: 60000}
  - {name: long, url: "http://127.0.0.1:$huge/mcp", tools: [switch_light], max_kb: 8000, text_kb: 1, timeout_ms: 60000}
  - {name: gone, url: "http://127.0.0.1:$gone/mcp", tools: [switch_light], timeout_ms: 60000}
  - {name: pystdio, command: ["$venv/bin/python", "$PWD/tests/python/mcp_server.py", stdio, "$work/pystdio.log"], tools: [switch_light], env: [{name: MCP_SECRET, file: token}], timeout_ms: 60000}
  - {name: jsstdio, command: ["$(command -v node)", "$modules/mcp_server.mjs", stdio, "$work/jsstdio.log"], tools: [switch_light], timeout_ms: 60000}
  - {name: renamed, command: ["$venv/bin/python", "$PWD/tests/python/mcp_server.py", stdio, "$work/renamed.log"], tools: [switch_light], env: [{name: MCP_MODE, value: renamed}], timeout_ms: 60000}
  - {name: nothing, command: [/bin/false], tools: [switch_light]}
  - {name: absent, command: [/no/such/program], tools: [switch_light]}
  - {name: babble, command: [/bin/sh, -c, "while read line; do echo hello; done"], tools: [switch_light]}
pipelines:
END
    for s in py js slow huge long gone pystdio jsstdio renamed nothing absent babble; do pipe "$s" "$s" "mcp_rounds: 1"; done
    pipe twice py "mcp_rounds: 3"
    pipe clash "py, js"
} >"$work/c.yaml"
start_shoal "$work/c.yaml"
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
up() { for p in "$@"; do for _ in $(seq 200); do listens "$p" && break; sleep 0.1; done; listens "$p" || fail "no server listens at $p: $(cat "$work"/*.err)"; done; }
up "$py" "$js" "$slow" "$huge"
ask() { curl -s -m 60 "$url/v1/process" -d "{\"pipeline\":\"$1\",\"input\":\"turn off the kitchen light\"}"; }
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }
count() { cat "$work/$1.log" 2>/dev/null | wc -l; }

for s in py js pystdio jsstdio; do
    for n in 1 2; do # the second time in the session that is open
        said=$(ask $s)
        want "$(field "$said" '[(c["server"], c["tool"], c["outcome"]) for c in d["trace"][0]["mcp"]]')" "[('$s', 'switch_light', 'ok')]" "$s: $said"
        want "$(count $s)" "$n" "calls that $s has seen"
    done
    python3 - "$work/$s.log" <<'END' || fail "what $s was called with: $(cat "$work/$s.log")"
import json, sys
for c in map(json.loads, open(sys.argv[1])):
    assert c["tool"] == "switch_light" and c["target"] in ("light.kitchen", "light.hall") and type(c["on"]) is bool, c
END
done
grep -q secret-of-a-file "$work/pystdio.log" || fail "the program has not its variable"
said=$(ask twice)
want "$(field "$said" '1 <= len(d["trace"][0]["mcp"]) <= 3 and {c["outcome"] for c in d["trace"][0]["mcp"]} == {"ok"}')" True "rounds: $said"
grep -q erase_everything "$work"/*.log && fail "a tool was called that was not allowed"

# ---- faults: each names the server
fault() { # PIPELINE WORDS STATUS
    said=$(ask "$1")
    field "$said" 'd["error"]["message"]' | grep -qE "$2" || fail "$1: $said"
    grep -q "MCP server '$1'" <<<"$said" || fail "$1 is not named: $said"
}
fault slow "did not answer within"
fault huge "max_kb"
fault gone "cannot be asked"
fault renamed "none of the tools"
fault nothing "ended|closed its output|reads no more" # whichever is noticed first
fault absent "cannot be started"
fault babble "no message of MCP"
said=$(ask clash)
grep -q "has the name of another one" <<<"$said" || fail "a clash of names: $said"
want "$(field "$(ask long)" 'd["trace"][0]["mcp"][0]["outcome"]')" ok "a result that is cut"
# ---- a client that leaves, and a configuration that is read again, in the midst of a call
pid=$(gateway)
curl -s -m 0.7 "$url/v1/process" -d '{"pipeline":"slow","input":"turn off the kitchen light"}' >/dev/null
curl -s -m 20 "$url/v1/process" -d '{"pipeline":"slow","input":"turn off the kitchen light"}' >"$work/held" & held=$!
sleep 0.5
kill -HUP "$server"
wait $held
grep -q 'did not answer within' "$work/held" || fail "a call over a reload: $(cat "$work/held")"
want "$(gateway)" "$pid" "the gateway has crashed"
# ---- killed: the program is started again, the other server's session is opened again
program=$(pgrep -f "mcp_server.py stdio $work/pystdio.log")
kill -9 $program
for _ in $(seq 100); do kill -0 $program 2>/dev/null || break; sleep 0.05; done
want "$(field "$(ask pystdio)" 'd["trace"][0]["mcp"][0]["outcome"]')" ok "a program that was killed"
kill -9 "${servers[0]}"
wait "${servers[0]}" 2>/dev/null
said=$(ask py)
grep -q "MCP server 'py'.*cannot be asked" <<<"$said" || fail "a server that was killed: $said"
"$venv/bin/python" tests/python/mcp_server.py "$py" "$work/py.log" 2>"$work/py.err" & servers+=($!)
up "$py"
want "$(field "$(ask py)" 'd["trace"][0]["mcp"][0]["outcome"]')" ok "a server that is there again"
metrics=$(curl -s "$url/metrics")
grep -q '^shoal_mcp_calls_total{server="slow",tool="switch_light",result="late"} 2$' <<<"$metrics" || fail "metrics: $(grep mcp_calls <<<"$metrics")"
grep -q 'component=mcp event=called server=py tool=switch_light' "$log" || fail "no line in the log: $(grep component=mcp "$log" | head -3)"
# ---- what the configuration refuses
for bad in 's/mcp: \[py\]/mcp: [nobody]/' 's/name: gone, url: "[^"]*"/name: gone/' 's#\[/bin/false\]#[false]#'; do
    sed "$bad" "$work/c.yaml" >"$work/bad.yaml"
    "$SHOAL_BIN" config check "$work/bad.yaml" >/dev/null 2>&1 && fail "it takes $bad"
done
children=$(pgrep -P "$(gateway)" -f mcp_server)
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
for pid in $children; do kill -0 "$pid" 2>/dev/null && fail "program $pid outlives the server"; done
exit 0
