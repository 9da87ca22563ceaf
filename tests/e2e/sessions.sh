#!/usr/bin/env bash
# Conversations: what was said before is before what is said now, streamed or not; a turn whose end was heard outlives
# kill -9; owners do not meet; what is deleted, over its time or over the bounds is gone; nothing of it is in logs or files.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
owner_a=$(printf alice-key | sha256sum | cut -d' ' -f1)
owner_b=$(printf bob-key | sha256sum | cut -d' ' -f1)
config() { # sessions: section, further lines
    printf 'sessions: {%s}\nmanifest: %s\nmodels: [{name: home-chat-s}]\n%s\n' "$1" "$PWD/models/models.json" "${2:-}" >"$work/shoal.yaml"
}
# field JSON EXPRESSION: with d for the JSON
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }
ask() { curl -s -m 30 "${@:3}" "$url/v1/chat/completions" -d '{"model":"home-chat-s","temperature":0,"max_tokens":12,"ignore_eos":true,"messages":['"$2"'],'"$1"'"x":0}'; }
said() { field "$1" 'd["choices"][0]["message"]["content"]'; }
respond() { curl -s -m 30 "${@:2}" "$url/v1/responses" -d '{"model":"home-chat-s","temperature":0,"max_output_tokens":12,'"$1"'}'; }
output() { field "$1" '"".join(p["text"] for i in d["output"] for p in i.get("content",[]))'; }
user() { printf '{"role":"user","content":"%s"}' "$1"; }
code() { field "$1" 'd["error"]["code"]'; }

config ''
start_shoal "$work/shoal.yaml"

# ---- a session is the messages that it holds
system='{"role":"system","content":"Be brief."}'
one=$(said "$(ask '"session":"Grandmothers kitchen",' "$system,$(user 'my name is Zaphodine')")")
two=$(said "$(ask '' "$(user 'what is my name')" -H 'x-shoal-session: Grandmothers kitchen')")
plain=$(said "$(ask '' "$(user 'my name is Zaphodine'),$(python3 -c 'import json,sys;print(json.dumps({"role":"assistant","content":sys.argv[1]}))' "$one"),$(user 'what is my name')")")
want "$two" "$plain" "an answer with a session"
kept=$(curl -s "$url/v1/sessions/Grandmothers%20kitchen")
want "$(field "$kept" 'd["turns"], [m["role"] for m in d["messages"]]')" "(2, ['user', 'assistant', 'user', 'assistant'])" "what is kept"
want "$(field "$kept" 'd["messages"][1]["content"]')" "$one" "what is kept of the answer"

# streamed: kept when [DONE] comes
stream=$(ask '"session":"s","stream":true,' "$(user 'hello there')")
case $stream in *'[DONE]'*) ;; *) fail "the stream has no end: $stream" ;; esac
text=$(python3 -c 'import json,sys
print("".join(json.loads(l[6:])["choices"][0]["delta"].get("content") or "" for l in sys.argv[1].split("\n") if l.startswith("data: {")))' "$stream")
want "$(field "$(curl -s "$url/v1/sessions/s")" 'd["messages"][1]["content"]')" "$text" "a stream as it is kept"
# one whose client heard all but the end goes on without a second turn
id=$(grep '^id: ' <<<"$stream" | tail -1 | cut -c5-)
again=$(ask '"session":"s","stream":true,' "$(user 'hello there')" -H "Last-Event-ID: $id")
case $again in *'[DONE]'*) ;; *) fail "a stream that had been kept is not gone on with: $again" ;; esac
want "$(field "$(curl -s "$url/v1/sessions/s")" 'd["turns"]')" 1 "turns after a stream was gone on with"
early=$(grep '^id: ' <<<"$stream" | sed -n 3p | cut -c5-)
again=$(ask '"session":"s","stream":true,' "$(user 'hello there')" -H "Last-Event-ID: $early")
case $again in *'[DONE]'*) ;; *) fail "a stream that had been kept is not made again: $again" ;; esac
want "$(field "$(curl -s "$url/v1/sessions/s")" 'd["turns"]')" 1 "turns after a stream was made again"

# what cannot be
want "$(field "$(ask '"session":"s","n":2,' "$(user hi)")" 'd["error"]["param"]')" n "two answers"
want "$(field "$(ask '"session":"a",' "$(user hi)" -H 'x-shoal-session: b')" 'd["error"]["param"]')" session "two names"
want "$(field "$(ask '"session":"",' "$(user hi)")" 'd["error"]["param"]')" session "no name"
want "$(field "$(ask '' "$(user hi)" -H $'x-shoal-session: \xff\xfe')" 'd["error"]["param"]')" session "a name that no path could ask for"
want "$(field "$(curl -s "$url/v1/sessions/%ff")" 'd["error"]["message"]')" "the name in the path must be UTF-8" "such a path"
want "$(field "$(ask '"session":7,' "$(user hi)")" 'd["error"]["param"]')" session "a number"
want "$(field "$(ask '"session":"s",' "$system")" 'd["error"]["param"]')" messages "nothing but the system's"

# ---- deletion
want "$(field "$(curl -s -X DELETE "$url/v1/sessions/s")" 'd["deleted"]')" True "deletion"
want "$(code "$(curl -s "$url/v1/sessions/s")")" session_not_found "a deleted session"
want "$(code "$(curl -s -X DELETE "$url/v1/sessions/s")")" session_not_found "a second deletion"

# ---- responses
first=$(respond '"input":"my name is Zaphodine","instructions":"Be brief.","metadata":{"k":"v"}')
id=$(field "$first" 'd["id"]')
want "$(field "$first" 'd["object"], d["output"][0]["type"], d["metadata"], d["store"], d["instructions"]')" \
    "('response', 'message', {'k': 'v'}, True, 'Be brief.')" "a response"
second=$(respond '"input":[{"role":"user","content":[{"type":"input_text","text":"what is my name"}]}],"previous_response_id":"'"$id"'"')
id2=$(field "$second" 'd["id"]')
plain=$(said "$(curl -s "$url/v1/chat/completions" -d '{"model":"home-chat-s","temperature":0,"max_tokens":12,"messages":['"$(user 'my name is Zaphodine'),$(python3 -c 'import json,sys;print(json.dumps({"role":"assistant","content":sys.argv[1]}))' "$(output "$first")"),$(user 'what is my name')"']}')")
want "$(output "$second")" "$plain" "a response that goes on"
want "$(curl -s "$url/v1/responses/$id2")" "$second" "a response as it is kept"
want "$(field "$(curl -s -X DELETE "$url/v1/responses/$id")" 'd["deleted"]')" True "a response's deletion"
want "$(code "$(curl -s "$url/v1/responses/$id")")" response_not_found "a deleted response"
want "$(code "$(respond '"input":"x","previous_response_id":"'"$id"'"')")" previous_response_not_found "a deleted previous one"
output "$(respond '"input":"and now","previous_response_id":"'"$id2"'"')" >/dev/null || fail "what follows a deleted one is lost"
id=$(field "$(respond '"input":"x","store":false')" 'd["id"]')
want "$(code "$(curl -s "$url/v1/responses/$id")")" response_not_found "a response that is not to be stored"
events=$(respond '"input":"hello","stream":true')
for type in created in_progress output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done; do
    grep -q "^event: response.$type$" <<<"$events" || fail "the stream has no response.$type"
done
python3 - "$events" <<'END' || fail "the events are not as they should be"
import json, sys
events = [json.loads(l[6:]) for l in sys.argv[1].split("\n") if l.startswith("data: ")]
assert [e["sequence_number"] for e in events] == list(range(len(events)))
last = events[-1]
assert last["type"] in ("response.completed", "response.incomplete"), last["type"]
text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
assert text and last["response"]["output"][0]["content"][0]["text"] == text
assert last["response"]["usage"]["output_tokens"] > 0
END
for bad in '"input":[]' '"input":7' '"input":[{"type":"image"}]' '"input":"x","background":true' '"input":"x","session":"s"' \
    '"input":"x","tools":[{"type":"web_search"}]' '"input":[{"role":"tool","content":"x"}]' '"input":"x","truncation":"maybe"' \
    '"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]' '"input":"x","max_output_tokens":0'; do
    want "$(field "$(respond "$bad")" 'd["error"]["type"]')" invalid_request_error "$bad"
done

# ---- a history that is longer than the model's context is shortened, and the session lives on
long=$(python3 -c 'print("the kettle is warm and the lamp is bright " * 40)')
for _ in 1 2 3 4 5 6 7 8; do
    got=$(ask '"session":"long",' "$(user "$long")")
    said "$got" >/dev/null 2>&1 || fail "a long session ends with $got"
done

# ---- killed, it has every turn whose answer was heard
heard=0
(for i in $(seq 200); do ask '"session":"crash","seed":'"$i", "$(user "turn $i")" | grep -q '"finish_reason"' && echo "$i"; done) >"$work/heard" 2>/dev/null &
asking=$!
for _ in $(seq 200); do [ "$(wc -l <"$work/heard")" -ge 8 ] && break; sleep 0.05; done
kill -9 "$server"; wait "$server" 2>/dev/null
kill "$asking" 2>/dev/null; wait "$asking" 2>/dev/null
grep -aE "$(printf 'Zaphodine|Grandmother|turn [0-9]')" "$log" && fail "the log has what was said"
grep -qarE "Zaphodine|Grandmother|kettle" "$SHOAL_STATE" && fail "the state folder has what was said"
heard=$(wc -l <"$work/heard")
start_shoal "$work/shoal.yaml"
kept=$(curl -s "$url/v1/sessions/crash")
python3 - "$kept" "$work/heard" <<'END' || fail "of $heard turns that were heard some are lost: $kept"
import json, sys
said = {m["content"] for m in json.loads(sys.argv[1])["messages"] if m["role"] == "user"}
heard = [f"turn {l.strip()}" for l in open(sys.argv[2])]
assert len(heard) >= 8 and all(h in said for h in heard[-60:]), (heard, said)
END
stop_shoal

# ---- owners, bounds, keys
config 'max_turns: 2, max_kb: 4' "api_keys: [\"sha256:$owner_a\", \"sha256:$owner_b\"]"
start_shoal "$work/shoal.yaml"
alice='Authorization: Bearer alice-key' bob='Authorization: Bearer bob-key'
for i in 1 2 3; do ask '"session":"shared",' "$(user "alice $i")" -H "$alice" >/dev/null; done
ask '"session":"shared",' "$(user "bob")" -H "$bob" >/dev/null
want "$(field "$(curl -s -H "$alice" "$url/v1/sessions/shared")" '[m["content"] for m in d["messages"] if m["role"]=="user"]')" "['alice 2', 'alice 3']" "alice's"
want "$(field "$(curl -s -H "$bob" "$url/v1/sessions/shared")" 'd["turns"]')" 1 "bob's"
id=$(field "$(respond '"input":"x"' -H "$alice")" 'd["id"]')
want "$(code "$(curl -s -H "$bob" "$url/v1/responses/$id")")" response_not_found "alice's response for bob"
want "$(code "$(curl -s -X DELETE -H "$bob" "$url/v1/responses/$id")")" response_not_found "alice's response, deleted by bob"
want "$(field "$(curl -s -H "$alice" "$url/v1/responses/$id")" 'd["id"]')" "$id" "alice's response"
openssl rand -hex 32 >>"$SHOAL_STATE/sessions.key"
want "$(field "$(curl -s -H "$alice" "$url/v1/sessions/shared")" 'd["turns"]')" 2 "with a second key"
sed -i 2d "$SHOAL_STATE/sessions.key"
want "$(field "$(curl -s -H "$alice" "$url/v1/sessions/shared")" 'd["turns"]')" 2 "with the second key alone"
want "$(code "$(curl -s -H "$bob" "$url/v1/sessions/shared")")" sessions_failed "what only the first key opens"
want "$(field "$(curl -s -X DELETE -H "$bob" "$url/v1/sessions/shared")" 'd["deleted"]')" True "deletion without its key"
big=$(python3 -c 'print("x" * 3000)')
want "$(field "$(respond '"input":"'"$big"'"' -H "$alice")" 'd["error"]["param"]')" store "what is too long to be kept"
stop_shoal

# ---- nothing is kept
config 'max_mb: 0'
start_shoal "$work/shoal.yaml"
want "$(code "$(ask '"session":"s",' "$(user hi)")")" sessions_off "a session where none are kept"
want "$(field "$(respond '"input":"x"')" 'd["store"]')" False "a response where none are kept"
want "$(code "$(respond '"input":"x","store":true')")" sessions_off "one that is to be stored"
stop_shoal

# ---- files may not grow any more: who wants a turn kept hears that it is not, what was kept is there, and others are answered
config 'max_kb: 64'
limit=$(ulimit -Sf)
ulimit -Sf 160
start_shoal "$work/shoal.yaml"
ulimit -Sf "$limit"
rm -rf "$work/full" && mkdir "$work/full"
big=$(python3 -c 'print("the kettle is warm " * 20)')
for i in $(seq 60); do
    ask '"session":"full","seed":'"$i"',' "$(user "$i $big")" >"$work/full/$i"
    grep -q '"code":"sessions_failed"' "$work/full/$i" && break
done
grep -q '"code":"sessions_failed"' "$work/full/$i" || fail "a file that may not grow takes $i turns: $(tail -c 300 "$work/full/$i")"
[ "$i" -gt 1 ] || fail "not one turn was kept: $(cat "$work/full/1")"
kept=$(curl -s "$url/v1/sessions/full")
[ "$(field "$kept" 'len(d["messages"]) > 0')" = True ] || fail "what was kept is gone: $kept"
said "$(ask '' "$(user hi)")" >/dev/null || fail "chat does not answer while nothing can be kept"
stop_shoal
want "$stopped" 0 "the end where nothing can be kept"

# ---- no folder to keep it in: the server serves, and says so to whom it concerns
config 'path: /proc/nowhere/s.db, key_file: /proc/nowhere/s.key'
start_shoal "$work/shoal.yaml"
want "$(code "$(ask '"session":"s",' "$(user hi)")")" sessions_failed "a session that cannot be kept"
said "$(ask '' "$(user hi)")" >/dev/null || fail "chat does not answer without sessions"
stop_shoal
want "$stopped" 0 "the end"
echo ok
