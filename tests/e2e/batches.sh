#!/usr/bin/env bash
# Batches: a file of requests becomes a file of answers, one for each custom_id, also when the gateway or the whole server is
# killed in the middle; what was answered before is not asked again; a batch belongs to the key that made it.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
sum() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
cat >"$work/c.yaml" <<END
manifest: $PWD/models/models.json
models: [{name: home-embed}, {name: home-chat-s}]
batches: {max_running: 2, max_lines: 60, max_open: 3}
api_keys:
  - {name: alice, sha256: $(sum k-alice)}
  - {name: bob, sha256: $(sum k-bob), models: [home-embed]}
  - {name: carol, sha256: $(sum k-carol), limits: {tokens_per_minute: 100}}
  - {name: root, admin: true, sha256: $(sum k-root)}
END
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }
as() { curl -s -m 60 -H "authorization: Bearer $1" "$url$2" "${@:3}"; }
upload() { field "$(as "$1" /v1/files -F purpose=batch -F file=@"$2")" 'd["id"]'; }
create() { as "$1" /v1/batches -d "{\"input_file_id\":\"$2\",\"endpoint\":\"$3\",\"completion_window\":\"24h\",\"metadata\":{\"for\":\"a test\"}}"; }
await() { # KEY ID: until it has ended
    for _ in $(seq 600); do
        said=$(as "$1" "/v1/batches/$2")
        [[ $(field "$said" 'd["status"]') =~ ^(completed|failed|expired|cancelled)$ ]] && return
        sleep 0.1
    done
    fail "the batch has not ended: $said"
}
answered() { # [N]: which lines were answered, and by which request; waits until there are N
    python3 - "$SHOAL_STATE/collections.db" "${1:-0}" <<'END'
import json, sqlite3, sys, time
db = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
for _ in range(4000):
    rows = db.execute("SELECT n, answer FROM batch_lines WHERE state > 0 ORDER BY n").fetchall()
    if len(rows) >= int(sys.argv[2]): break
    time.sleep(0.005)
else:
    sys.exit("no %s lines were answered" % sys.argv[2])
for n, answer in rows: print(n, json.loads(answer)["response"]["request_id"])
END
}
python3 - "$work" <<'END'
import json, sys
def line(i, body, url): return json.dumps({"custom_id": f"r{i}", "method": "POST", "url": url, "body": body}) + "\n"
chat = lambda i, n: {"model": "home-chat-s", "messages": [{"role": "user", "content": f"say {i}"}], "ignore_eos": True, "max_tokens": n, "temperature": 1, "seed": i}
for name, n in (("chat", 200), ("short", 40)): # long enough to be killed in the middle
    with open(f"{sys.argv[1]}/{name}.jsonl", "w") as f:
        for i in range(1, 41): f.write(line(i, chat(i, n), "/v1/chat/completions"))
with open(sys.argv[1] + "/embed.jsonl", "w") as f:
    f.write(line(1, {"model": "home-embed", "input": "one"}, "/v1/embeddings"))
    f.write("\n" + line(2, {"model": "no-such", "input": "two"}, "/v1/embeddings"))
    f.write(line(3, {"model": "home-embed", "input": "three"}, "/v1/embeddings").rstrip("\n"))
with open(sys.argv[1] + "/bad.jsonl", "w") as f:
    f.write("{\n" + line(1, {}, "/v1/embeddings") + line(1, {}, "/v1/embeddings") + line(2, {}, "/v1/completions") + '{"custom_id":"x"}\n')
with open(sys.argv[1] + "/many.jsonl", "w") as f:
    for i in range(61): f.write(line(i, {"input": "x"}, "/v1/embeddings"))
open(sys.argv[1] + "/empty.jsonl", "w").write("\n \n")
END
start_shoal "$work/c.yaml"

# ---- one that is done, with an error in it
file=$(upload k-alice "$work/embed.jsonl")
made=$(create k-alice "$file" /v1/embeddings)
id=$(field "$made" 'd["id"]')
want "$(field "$made" '(d["object"], d["status"], d["endpoint"], d["metadata"], d["output_file_id"])')" \
    "('batch', 'validating', '/v1/embeddings', {'for': 'a test'}, None)" "a new batch"
await k-alice "$id"
want "$(field "$said" '(d["status"], d["request_counts"])')" "('completed', {'total': 3, 'completed': 2, 'failed': 1})" "its end"
out=$(as k-alice "/v1/files/$(field "$said" 'd["output_file_id"]')/content")
errors=$(as k-alice "/v1/files/$(field "$said" 'd["error_file_id"]')/content")
want "$(python3 -c 'import json,sys; print([(d["custom_id"], d["response"]["status_code"], len(d["response"]["body"]["data"]), d["error"]) for d in map(json.loads, sys.argv[1].splitlines())])' "$out")" \
    "[('r1', 200, 1, None), ('r3', 200, 1, None)]" "the output"
want "$(field "$errors" '(d["custom_id"], d["response"]["status_code"], d["response"]["body"]["error"]["code"])')" "('r2', 404, 'model_not_found')" "the errors"

# ---- whose it is, and what his key may do
for path in "/v1/batches/$id" "/v1/files/$(field "$said" 'd["output_file_id"]')/content"; do
    want "$(as k-bob "$path" -o /dev/null -w '%{http_code}')" 404 "bob reads $path"
done
want "$(field "$(as k-bob /v1/batches)" 'd["data"]')" "[]" "bob's batches"
want "$(field "$(create k-bob "$file" /v1/embeddings)" 'd["error"]["code"]')" not_found "bob reads alice's file"
sed -n 1p "$work/chat.jsonl" >"$work/one.jsonl"
bobs=$(field "$(create k-bob "$(upload k-bob "$work/one.jsonl")" /v1/chat/completions)" 'd["id"]')
await k-bob "$bobs"
errors=$(as k-bob "/v1/files/$(field "$said" 'd["error_file_id"]')/content")
want "$(field "$errors" 'd["response"]["status_code"]')" 403 "a model that bob may not use"

# ---- what is refused
want "$(field "$(as k-bob /v1/files -F purpose=batch_output -F file=@"$work/embed.jsonl")" 'd["error"]["param"]')" purpose "an upload of an output"
bad=$(field "$(create k-alice "$(upload k-alice "$work/bad.jsonl")" /v1/embeddings)" 'd["id"]')
await k-alice "$bad"
want "$(field "$said" '(d["status"], [(e["line"], e["code"]) for e in d["errors"]["data"]])')" \
    "('failed', [(1, 'invalid_json_line'), (4, 'invalid_url'), (5, 'missing_required_parameter'), (3, 'duplicate_custom_id')])" "faults by line"
for kind in "many too_many_requests" "empty empty_file"; do
    bad=$(field "$(create k-alice "$(upload k-alice "$work/${kind% *}.jsonl")" /v1/embeddings)" 'd["id"]')
    await k-alice "$bad"
    want "$(field "$said" '(d["status"], d["errors"]["data"][0]["code"])')" "('failed', '${kind#* }')" "$kind"
done
want "$(field "$(create k-alice "$file" /v1/audio/speech)" 'd["error"]["param"]')" endpoint "an endpoint that is none"
want "$(field "$(create k-alice file-1 /v1/embeddings)" 'd["error"]["code"]')" not_found "a file that is none"
page=$(as k-alice "/v1/batches?limit=2")
want "$(field "$page" '(len(d["data"]), d["has_more"])')" "(2, True)" "a page"
want "$(field "$(as k-alice "/v1/batches?limit=2&after=$(field "$page" 'd["last_id"]')")" '(d["data"][-1]["id"], d["has_more"])')" "('$id', False)" "the next page"

# ---- a key's cached answers are its own: above, alice asked two lines that are there, and bob none
sed -n 1p "$work/embed.jsonl" >"$work/same.jsonl"
for who in k-bob k-bob k-alice; do
    again=$(field "$(create $who "$(upload $who "$work/same.jsonl")" /v1/embeddings)" 'd["id"]')
    await $who "$again"
done
lookups() { sed -n "s/^shoal_cache_lookups_total{.*name=\"home-embed\",result=\"$1\"} //p" <<<"$metrics"; }
for _ in $(seq 20); do # lookups are counted behind the answer
    metrics=$(as k-root /metrics)
    [ $(($(lookups hit) + $(lookups miss))) -ge 5 ] && break
    sleep 0.3
done
want "$(lookups miss) $(lookups hit)" "3 2" "misses and hits"

# ---- killed in the middle: the gateway, then everything
file=$(upload k-alice "$work/chat.jsonl")
reach() { answered "$1" >"$work/$2" || fail "lines that were not answered"; }
start() { # N NAME: a batch of $file, until N of its lines are answered; it is fast, so the one who waits begins first
    answered "$1" >"$work/$2" &
    made=$(create k-alice "$file" /v1/chat/completions)
    deleted=$(as k-alice "/v1/files/$file" -X DELETE)
    id=$(grep -o 'batch_[0-9]*' <<<"$made" | head -1)
    wait $! || fail "no lines were answered: $made"
}
start 5 first
kill -9 "$(gateway)"
want "$(field "$deleted" 'd["error"]["type"]')" invalid_request_error "the input is deleted"
reach 12 second
{ kill -9 "$server" $(gateway); wait "$server"; } 2>/dev/null
answered >"$work/third"
[ "$(wc -l <"$work/third")" -lt 40 ] || fail "it was done before it was killed"
start_shoal "$work/c.yaml"
await k-alice "$id"
want "$(field "$said" '(d["status"], d["request_counts"], d["error_file_id"])')" "('completed', {'total': 40, 'completed': 40, 'failed': 0}, None)" "after two crashes"
as k-alice "/v1/files/$(field "$said" 'd["output_file_id"]')/content" >"$work/out"
python3 - "$work" <<'END' || fail "the output after two crashes"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1] + "/out")]
assert [l["custom_id"] for l in lines] == [f"r{i}" for i in range(1, 41)], [l["custom_id"] for l in lines]
for name in ("first", "second", "third"):
    for l in open(sys.argv[1] + "/" + name):
        n, request = l.split()
        assert lines[int(n) - 1]["response"]["request_id"] == request, f"line {n} was asked again"
END

# ---- cancelled: what ran is answered, what did not has an error
start 2 some
want "$(field "$(as k-alice "/v1/batches/$id/cancel" -X POST)" 'd["status"]')" cancelling "a cancel"
await k-alice "$id"
python3 - "$said" "$(as k-alice "/v1/files/$(field "$said" 'd["output_file_id"]')/content")" "$(as k-alice "/v1/files/$(field "$said" 'd["error_file_id"]')/content")" <<'END' || fail "a cancelled batch: $said"
import json, sys
b, out, errors = json.loads(sys.argv[1]), *([json.loads(l) for l in s.splitlines()] for s in sys.argv[2:])
assert b["status"] == "cancelled" and b["cancelled_at"] >= b["cancelling_at"]
assert sorted(l["custom_id"] for l in out + errors) == sorted(f"r{i}" for i in range(1, 41))
assert b["request_counts"] == {"total": 40, "completed": len(out), "failed": len(errors)} and len(errors) > 0
assert {e["error"]["code"] for e in errors} == {"batch_cancelled"}
END
want "$(field "$(as k-alice "/v1/batches/$id/cancel" -X POST)" 'd["error"]["type"]')" invalid_request_error "a second cancel"
want "$(field "$(as k-alice "/v1/files/$file" -X DELETE)" 'd["deleted"]')" True "the input is deleted afterwards"

# ---- Anthropic's
made=$(as k-alice /v1/messages/batches -d '{"requests":[{"custom_id":"a","params":{"model":"home-chat-s","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}},{"custom_id":"b","params":{"model":"no-such","max_tokens":5,"messages":[]}}]}')
id=$(field "$made" 'd["id"]')
want "$(field "$made" '(d["type"], d["processing_status"], d["results_url"])')" "('message_batch', 'in_progress', None)" "a batch of messages"
for _ in $(seq 100); do
    said=$(as k-alice "/v1/messages/batches/$id")
    [ "$(field "$said" 'd["processing_status"]')" = ended ] && break
    sleep 0.1
done
want "$(field "$said" 'sorted(d["request_counts"].items())')" "[('canceled', 0), ('errored', 1), ('expired', 0), ('processing', 0), ('succeeded', 1)]" "its counts"
as k-alice "$(field "$said" 'd["results_url"]')" >"$work/results"
want "$(python3 -c 'import json,sys; print([(d["custom_id"], d["result"]["type"], d["result"].get("message", d["result"].get("error"))["type"]) for d in map(json.loads, open(sys.argv[1]))])' "$work/results")" \
    "[('a', 'succeeded', 'message'), ('b', 'errored', 'error')]" "its results"
want "$(field "$(as k-alice "/v1/batches/$id")" 'd["error"]["code"]')" not_found "by OpenAI's path"
want "$(field "$(as k-alice "/v1/messages/batches/$id" -X DELETE)" 'd["type"]')" message_batch_deleted "a delete"

# ---- a key that is over its rate stops nobody else
first=$(field "$(create k-carol "$(upload k-carol "$work/short.jsonl")" /v1/chat/completions)" 'd["id"]')
for _ in $(seq 100); do grep -q 'status=429' "$log" && break; sleep 0.1; done
grep -q 'status=429' "$log" || fail "no line of carol's was refused"
id=$(field "$(create k-bob "$(upload k-bob "$work/embed.jsonl")" /v1/embeddings)" 'd["id"]')
await k-bob "$id"
want "$(field "$said" 'd["request_counts"]["total"]')" 3 "bob's batch beside carol's, $first"

metrics=$(as k-root /metrics)
grep -q '^shoal_batches_total{status="cancelled"} 1$' <<<"$metrics" || fail "metrics: $(grep batch <<<"$metrics")"

stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
