#!/usr/bin/env bash
# A cluster of release 0.3.0 (a gateway, two machines) gets this version one machine after the other while clients stream: no answer is
# lost and each says what an undisturbed one does. What the old gateway kept is there afterwards; the old one, when it returns, has the
# sessions, and refuses the collections without changing them.
# long: it builds release 0.3.0
source "$(dirname "$0")/lib.sh"
release=fbbebc1b850fd0af9c17795c5d7a32ae68e52810 # 0.3.0
git cat-file -e "$release^{commit}" 2>/dev/null || skip "this checkout's history does not have release 0.3.0"
command -v python3 >/dev/null || skip "python3 is not installed"
new=$SHOAL_BIN old=$PWD/build/release-0.3.0/shoal
(
    flock 9
    [ -x "$old" ] && exit
    mkdir -p "$work/source" "${old%/*}" && git archive "$release" -- . ':!models' ':!tests/data' | tar -x -C "$work/source" && cd "$work/source" &&
        nice cmake --preset release >"$work/build.log" 2>&1 && nice cmake --build build -j2 --target shoal >>"$work/build.log" 2>&1 &&
        cp build/shoal "$old.part" && mv "$old.part" "$old"
) 9>"$PWD/build/.release-0.3.0.lock" || fail "release 0.3.0 cannot be built: $(tail -3 "$work/build.log")"

declare -A pids=() version=()
clients=()
end_all() {
    end "${clients[@]}" "${pids[@]}"
    cleanup
}
trap end_all EXIT
url=http://127.0.0.1:$(free_port) control=127.0.0.1:$(free_port 1)
export SHOAL_STATE=$work/state
cat >"$work/shoal.yaml" <<YAML
cluster: {listen: "$control", name: a, state: $work/a}
cache: {mb: 0}
sessions: {}
retrieval: {}
drain_ms: 60000
manifest: $PWD/models/models.json
models:
  - {name: chat, path: $PWD/models/home-chat-s.gguf, replicas: 2, place: {nodes: [pi, kit]}}
  - {name: home-embed, place: {nodes: [a]}}
YAML
until_true() { # WHAT COMMAND...
    for _ in $(seq 1200); do
        "${@:2}" && return 0
        sleep 0.05
    done
    fail "$1: never came to pass: $(for n in pi kit; do pgrep -P "${pids[$n]}" -af .; done; curl -s "$url/readyz") $("$new" nodes --server "$url" 2>&1) $(tail -n 5 "$work"/{a,pi,kit}.log)"
}
is_served() { curl -s "$url/healthz" | grep -q ok; }
gateway() { # BINARY
    "$1" serve -c "$work/shoal.yaml" --port "${url##*:}" >"$work/a.out" 2>>"$work/a.log" &
    pids[a]=$!
    until_true "the gateway listens" is_served
}
agent() { # NAME BINARY [ARGS...]
    "$2" agent --state "$work/$1" --no-measure -l 127.0.0.1:0 "${@:3}" >"$work/$1.out" 2>>"$work/$1.log" &
    pids[$1]=$!
    version[$1]=$2
}
ends() { # NAME: as service managers end it
    kill "${pids[$1]}"
    wait "${pids[$1]}" 2>/dev/null
}
# has_worker NAME: its worker of `chat` is ready, and runs the same program.
has_worker() {
    local pid
    pid=$(pgrep -P "${pids[$1]}" -f 'worker .*--name chat' | head -1)
    [ -n "$pid" ] && [ "$(readlink "/proc/$pid/exe")" = "${version[$1]}" ] && n_ready 2
}
n_ready() { [ "$(curl -s "$url/readyz" | tr '{' '\n' | grep '"model":"chat"' | grep -c '"state":"ready"')" = "$1" ]; }
# field JSON EXPRESSION: with d for the JSON
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
# What a client does whose connection is refused, or ends before the answer: it asks again.
stream() { # FILE SEED
    curl -sN -m 60 --retry 400 --retry-delay 0 --retry-connrefused "$url/v1/chat/completions" -d '{"model":"chat","stream":true,"temperature":1,"seed":'"$2"',"ignore_eos":true,"max_tokens":600,"messages":[{"role":"user","content":"tell me everything"}]}' >"$1"
}
said() { python3 -c 'import json,sys
lines = open(sys.argv[1]).read().split("\n")
assert "data: [DONE]" in lines, "the stream has no end"
print("".join(json.loads(l[6:])["choices"][0]["delta"].get("content") or "" for l in lines if l.startswith("data: {") and json.loads(l[6:]).get("choices")))' "$1"; }
turn() { curl -s -m 30 --retry 400 --retry-delay 0 --retry-connrefused "$url/v1/chat/completions" -d '{"model":"chat","session":"kitchen","temperature":0,"max_tokens":8,"ignore_eos":true,"messages":[{"role":"user","content":"'"$1"'"}]}'; }
turns() { field "$(curl -s "$url/v1/sessions/kitchen")" 'd["turns"]'; }
finds() { "$1" docs search home "when do I bleed the radiators?" -s "$url" --json | grep -q "every autumn"; }

# ---- the cluster of the release, and what it says
"$old" ca init --state "$work/a" >/dev/null || fail "ca init"
gateway "$old"
for name in pi kit; do
    agent $name "$old" --join "$control" --token "$("$old" token create --state "$work/a" --name $name)" --name $name
done
for name in pi kit; do until_true "$name serves" has_worker $name; done
for seed in 1 2 3; do
    stream "$work/before" $seed
    said "$work/before" >"$work/said.$seed" || fail "before: $(tail -c 300 "$work/before")"
done
turn "my name is Zaphodine" | grep -q '"content"' || fail "a session's turn"
echo 'Bleed the radiators every autumn. Hold a cloth under the valve.' >"$work/boiler.txt"
"$old" docs add home "$work/boiler.txt" -s "$url" >"$work/out" 2>&1 || fail "docs add: $(cat "$work/out")"
until_true "a document is found" finds "$old"

# ---- clients that go on all the time
client() {
    local n=0
    until [ -e "$work/over" ]; do
        n=$((n + 1))
        stream "$work/stream.$1" "$1"
        if said "$work/stream.$1" >"$work/now.$1" 2>>"$work/lost.$1" && cmp -s "$work/now.$1" "$work/said.$1"; then
            echo "$n" >"$work/done.$1"
        else
            cp "$work/stream.$1" "$work/wrong.$1.$n"
        fi
    done
}
for seed in 1 2 3; do client $seed & clients+=($!); done
n_wrong() { find "$work" -name 'wrong.*' | wc -l; }
none_wrong() { [ "$(n_wrong)" = 0 ] || fail "$1: $(n_wrong) answers are wrong or lost: $(tail -c 300 "$(find "$work" -name 'wrong.*' | head -1)")"; }

# upgrade NAME BINARY: as documented: drain, replace, resume.
upgrade() {
    ends "$1"
    agent "$1" "$2"
    until_true "$1 serves with ${2#"$PWD/"}" has_worker "$1"
    none_wrong "$1 with ${2#"$PWD/"}"
}
replace_gateway() { # BINARY
    ends a
    gateway "$1"
    until_true "both machines are there" n_ready 2
    none_wrong "the gateway ${1#"$PWD/"}"
}
upgrade pi "$new"
upgrade kit "$new"
[ "$(turns)" = 1 ] || fail "turns: $(turns)"
replace_gateway "$new"
[ "$(turns)" = 1 ] || fail "the session at the new gateway: $(curl -s "$url/v1/sessions/kitchen")"
turn "what is my name" | grep -q '"content"' || fail "the session's next turn"
finds "$new" || fail "the document at the new gateway"

# ---- and back
replace_gateway "$old"
[ "$(turns)" = 2 ] || fail "the session at the old gateway: $(curl -s "$url/v1/sessions/kitchen")"
finds "$old" 2>"$work/err" && fail "0.3.0 knows the form of this version's collections: say so in docs/releases.md"
grep -q 'was made by a newer Shoal' "$work/err" || fail "the document at the old gateway: $(cat "$work/err")"
upgrade pi "$old"
replace_gateway "$new" # with a machine of each
finds "$new" || fail "the document after the old gateway"
upgrade pi "$new"
touch "$work/over"
wait "${clients[@]}"
none_wrong "at the end"
n=$(cat "$work"/done.* | awk '{ n += $1 } END { print n }')
[ "$n" -ge 10 ] || fail "only $n answers"
echo "0.3.0 to this version and back: $n streams, none lost, none different"
