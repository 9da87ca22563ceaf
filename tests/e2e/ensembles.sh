#!/usr/bin/env bash
# Models that answer together: a cascade says who was sure, a vote of equals says what one of them says, and both go on
# when members die, freeze or never were.
source "$(dirname "$0")/lib.sh"

at=$PWD/models
cat >"$work/shoal.yaml" <<EOF
manifest: $at/models.json
models:
  - {name: home-chat-s}
  - {name: home-chat-m}
  - {name: twin, path: $at/home-chat-s.gguf}
ensembles:
  - {name: cascade, kind: cascade, members: [{model: home-chat-s, min_confidence: 0.6}, {model: home-chat-m}]}
  - {name: sure, kind: cascade, members: [{model: home-chat-s, min_confidence: 0.000001}, {model: home-chat-m}]}
  - {name: vote, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m, weight: 2}]}
  - {name: twins, kind: vote, members: [{model: home-chat-s}, {model: twin}]}
  - {name: refine, kind: refine, wait_ms: 30000, members: [{model: home-chat-s}, {model: home-chat-m}]}
  - {name: geometric, kind: vote, mean: geometric, members: [{model: home-chat-s}, {model: twin}]}
EOF
[ -f "$at/home-chat-s.gguf" ] || sed -i "s|$at/home-chat-s.gguf|$at/$(cd "$at" && ls | grep -m1 home-chat-s)|" "$work/shoal.yaml"
start_shoal "$work/shoal.yaml"

body() { echo '{"model":"'"$1"'","temperature":0,"max_tokens":'"${3:-30}"',"stream":'"${4:-false}"',"ignore_eos":'"${5:-false}"',"messages":[{"role":"user","content":"'"$2"'"}]}'; }
ask() { curl -s -m 30 ${fresh:+-H cache-control:no-store} -D "$work/head" "$url/v1/chat/completions" -d "$(body "$@")" -o "$work/answer" && grep -o '"content":"[^"]*"' "$work/answer"; }
stream() { curl -sN -m 60 -H 'cache-control: no-store' -D "$work/head.$1" "$url/v1/chat/completions" -d "$(body "$1" "$2" 300 true true)"; }
said() { grep -o '"delta":{"content":"[^"]*"' "$1" | cut -d'"' -f6 | tr -d '\n'; }
header() { grep -i "^x-shoal-$1:" "$work/${2:-head}" | tr -d '\r'; }
worker_pid() { # while it is being started again it has none
    local pid
    for _ in $(seq 200); do
        pid=$(curl -s "$url/readyz" | tr '{' '\n' | grep "\"$1/0\"" | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2)
        [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && break
        sleep 0.02
    done
    echo "${pid:-none}"
}

curl -s "$url/v1/models" | grep -q '"id":"vote","object":"model"' || fail "an ensemble is not among the models"

for text in "hello" "what is the weather like" "tell me a story"; do
    one=$(ask home-chat-s "$text")
    [ -n "$one" ] || fail "home-chat-s said nothing: $(cat "$work/answer")"
    for name in twins geometric; do
        two=$(ask $name "$text")
        [ "$one" = "$two" ] || fail "$name said $two, one of them alone $one"
    done
    larger=$(ask home-chat-m "$text")
    got=$(ask cascade "$text")
    case "$(header ensemble)" in
    *"home-chat-s 0."*" >= 0.600") [ "$got" = "$one" ] || fail "the cascade was sure of $one and said $got" ;;
    *"home-chat-s 0."*" < 0.600, home-chat-m") [ "$got" = "$larger" ] || fail "the cascade asked for $larger and said $got" ;;
    *) fail "the cascade's way is not told: $(cat "$work/head")" ;;
    esac
    got=$(ask sure "$text")
    [ "$got" = "$one" ] || fail "with any confidence the first member answers: $got"
done
n_left() { grep -c event=vote_left "$log"; }
for _ in 1 2 3; do # a member that is given no core for long leaves, and the rest say what they say
    left=$(n_left)
    one=$(fresh=1 ask vote hello) two=$(fresh=1 ask vote hello)
    [ "$(n_left)" = "$left" ] && break
done
[ -n "$one" ] && [ "$one" = "$two" ] || fail "a vote says one thing and then another: $one, then $two"
header ensemble | grep -q "arithmetic mean of home-chat-s 1, home-chat-m 2" || fail "no trace of the vote: $(cat "$work/head")"

# Who can take something back hears both, everybody else one.
better=$(ask home-chat-m "tell me a story")
[ "$(ask refine "tell me a story")" = "$better" ] || fail "a refine that waits said something else than its better member"
curl -sN -m 60 -H 'x-shoal-refine: 1' "$url/v1/chat/completions" -d "$(body refine "tell me a story" 30 true)" >"$work/refined"
fast=$(ask home-chat-s "tell me a story")
[ '"content":"'"$(said "$work/refined")"'"' = "$fast" ] || fail "the stream did not begin with the fast answer: $(cat "$work/refined")"
grep -A1 '^event: refine' "$work/refined" | grep -qF "$better" || fail "no better text came: $(cat "$work/refined")"
tail -3 "$work/refined" | grep -q 'data: \[DONE\]' || fail "the refined stream did not end"

# An undisturbed vote of twins, then one whose leader dies: twins are the same file, so the bytes are the same.
stream twins "tell me everything" >"$work/calm"
[ -n "$(said "$work/calm")" ] || fail "the vote streamed nothing: $(head -c 400 "$work/calm")"
for victim in home-chat-s twin; do
    for _ in $(seq 20); do # until it died before the reply was whole
        pid=$(worker_pid $victim)
        stream twins "tell me everything" >"$work/cut" &
        reader=$!
        for _ in $(seq 200); do [ -s "$work/cut" ] && break; sleep 0.002; done
        kill -9 "$pid"
        wait $reader
        [ "$(said "$work/cut")" = "$(said "$work/calm")" ] || fail "$victim died, and the vote said something else:
$(said "$work/cut")
$(said "$work/calm")"
        grep -q 'data: \[DONE\]' "$work/cut" || fail "$victim died, and the answer did not end"
        grep -q '"error"' "$work/cut" && fail "$victim died, and the stream says so: $(tail -c 300 "$work/cut")"
        for _ in $(seq 200); do curl -s "$url/readyz" | grep -q '"status":"ready"' && [ "$(worker_pid $victim)" != "$pid" ] && break; sleep 0.05; done
        grep -q "event=vote_left route=twins model=$victim" "$log" && break
    done
    grep -q "event=vote_left route=twins model=$victim" "$log" || fail "$victim died, and nobody noticed"
done

# A frozen member holds nobody up.
frozen=$(worker_pid twin)
stream twins "tell me everything" >"$work/cut" &
reader=$!
for _ in $(seq 200); do [ -s "$work/cut" ] && break; sleep 0.005; done
kill -STOP "$frozen"
wait $reader
kill -CONT "$frozen"
[ "$(said "$work/cut")" = "$(said "$work/calm")" ] || fail "a frozen member changed the answer"

# Both die: they are waited for.
stream twins "tell me everything" >"$work/cut" &
reader=$!
for _ in $(seq 200); do [ -s "$work/cut" ] && break; sleep 0.005; done
kill -9 "$(worker_pid home-chat-s)" "$(worker_pid twin)"
wait $reader
[ "$(said "$work/cut")" = "$(said "$work/calm")" ] || fail "both died, and the vote said something else"
stop_shoal

wrong() {
    sed "s|^ensembles:.*|ensembles: [$1]|; /^  - {name: \(cascade\|sure\|vote\|twins\|refine\|geometric\)/d" "$work/shoal.yaml" >"$work/wrong.yaml"
    "$SHOAL_BIN" serve -c "$work/wrong.yaml" --port 0 >"$work/out" 2>&1 && fail "taken: $1"
    grep -q "$2" "$work/out" || fail "not told of $1: $(cat "$work/out")"
}
wrong "{name: v, kind: vote, members: [{model: home-chat-s}]}" "members"
wrong "{name: home-chat-s, kind: vote, members: [{model: home-chat-s}, {model: twin}]}" "model's name"
wrong "{name: v, kind: vote, members: [{model: home-chat-s}, {model: nobody}]}" "not among the models"
wrong "{name: v, kind: choir, members: [{model: home-chat-s}, {model: twin}]}" "cascade"
wrong "{name: c, kind: cascade, members: [{model: twin, calibration: nowhere.json}, {model: home-chat-s}]}" "nowhere.json"
echo "cascades tell their way, votes of twins say what one says, and outlive both"
