#!/usr/bin/env bash
# A batch whose answers cannot be written, since files may not grow any more, as on a full disk: it ends as failed, with the
# reason, and no line of it is asked twice. With room again batches run as before.
source "$(dirname "$0")/lib.sh"
command -v prlimit >/dev/null || skip "prlimit is not installed"
export SHOAL_STATE=$work/state
cat >"$work/c.yaml" <<END
manifest: $PWD/models/models.json
models: [{name: home-embed}]
batches: {max_running: 2, write_retry_s: 1}
END
python3 - "$work/in.jsonl" <<'END' # an answer has 40 vectors
import json, sys
with open(sys.argv[1], "w") as f:
    for i in range(8):
        body = {"model": "home-embed", "input": [f"text {i} {k}" for k in range(40)]}
        f.write(json.dumps({"custom_id": f"r{i}", "method": "POST", "url": "/v1/embeddings", "body": body}) + "\n")
END
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }
create() { curl -s -m 60 "$url/v1/batches" -d "{\"input_file_id\":\"$file\",\"endpoint\":\"/v1/embeddings\",\"completion_window\":\"24h\"}"; }
await() { # ID: until it has ended
    for _ in $(seq 600); do
        said=$(curl -s -m 60 "$url/v1/batches/$1")
        [[ $(field "$said" 'd["status"]') =~ ^(completed|failed|expired|cancelled)$ ]] && return
        sleep 0.1
    done
    fail "the batch has not ended: $said $(tail -3 "$log")"
}
asked() { grep -c "component=gateway event=request endpoint=embeddings" "$log"; }
start_shoal "$work/c.yaml"
file=$(field "$(curl -s "$url/v1/files" -F purpose=batch -F file=@"$work/in.jsonl")" 'd["id"]')

# ---- the log of the store may grow by the batch's lines, and not by an answer
grown=$(stat -c %s "$SHOAL_STATE/collections.db-wal")
prlimit --pid "$(gateway)" --fsize=$((grown + 80000)):
id=$(field "$(create)" 'd["id"]')
await "$id"
want "$(field "$said" '(d["status"], d["errors"]["data"][0]["code"], d["request_counts"], d["output_file_id"], d["failed_at"] > 0)')" \
    "('failed', 'answers_not_written', {'total': 8, 'completed': 0, 'failed': 8}, None, True)" "a batch that cannot be written"
field "$said" 'd["errors"]["data"][0]["message"]' | grep -q 'collections.db' || fail "no reason: $said"
grep -q "component=batches event=cannot_store batch=${id#batch_}" "$log" || fail "no try is logged"
grep -q "level=error component=batches event=given_up batch=${id#batch_}" "$log" || fail "the end is not logged"
want "$(asked)" 2 "requests, of which two run at once"

# ---- room again
prlimit --pid "$(gateway)" --fsize=unlimited: 2>/dev/null || prlimit --pid "$(gateway)" --fsize=1000000000:
id=$(field "$(create)" 'd["id"]')
await "$id"
want "$(field "$said" '(d["status"], d["request_counts"])')" "('completed', {'total': 8, 'completed': 8, 'failed': 0})" "with room again"
want "$(asked)" 10 "requests of both"
for _ in $(seq 100); do
    metrics=$(curl -s "$url/metrics")
    grep -q '^shoal_batches_total{status="failed"} [1-9]' <<<"$metrics" && break
    sleep 0.1
done
grep -q '^shoal_batches_total{status="failed"} [1-9]' <<<"$metrics" || fail "metrics: $(grep batch <<<"$metrics")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
