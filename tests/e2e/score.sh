#!/usr/bin/env bash
# Trees, recurrent networks and vision models: the commands and the endpoints agree with the references and
# with each other, and what is broken is refused in a sentence.
source "$(dirname "$0")/lib.sh"
data=$PWD/tests/data
trees=$data/sensors/trees demo=$data/sensors/demo.csv.gz vit=$data/hf/vit-tiny
out=$work/out err=$work/err
n=0

expect() { # CODE PATTERN ARGS...
    local code=$1 pattern=$2 status
    shift 2
    "$SHOAL_BIN" "$@" >"$out" 2>"$err" <"${input:-/dev/null}"
    status=$?
    [ $status -eq "$code" ] || fail "shoal $* ends with $status, not $code: $(head -2 "$err")"
    grep -qE -e "$pattern" "$out" "$err" || fail "shoal $* says: $(head -c 300 "$out" "$err")"
    n=$((n + 1))
}

# The reference's rows as a CSV, and its probabilities.
reference() {
    node -e '
        const fs = require("fs"), e = JSON.parse(fs.readFileSync(process.argv[1]));
        const rows = [e.features, ...e.rows.map((r) => r.x)];
        fs.writeFileSync(process.argv[2], rows.map((r) => r.join(",")).join("\n") + "\n");
        fs.writeFileSync(process.argv[3], JSON.stringify(e.rows));
    ' "$trees/expected.json" "$work/rows.csv" "$work/want.json"
}
command -v node >/dev/null || skip "node is not installed"
reference || fail "the reference cannot be read"

# near ANSWER TOLERANCE: lines of shoal score --json, or the data of /v1/score, against the reference
near() {
    node -e '
        const fs = require("fs"), text = fs.readFileSync(process.argv[1], "utf8");
        const want = JSON.parse(fs.readFileSync(process.argv[2])), tol = +process.argv[3];
        const got = text.startsWith("{\"object\"") ? JSON.parse(text).data
            : text.trim().split("\n").map((l) => JSON.parse(l)).filter((r) => r.raw);
        if (got.length !== want.length) throw new Error(`${got.length} rows`);
        want.forEach((w, i) => {
            const p = Array.isArray(got[i].scores) ? got[i].scores : Object.values(got[i].scores);
            const best = ["normal", "drift", "fault"][w.prob.indexOf(Math.max(...w.prob))];
            if (got[i].label !== best) throw new Error(`row ${i}: ${got[i].label}`);
            w.prob.forEach((v, k) => { if (!(Math.abs(v - p[k]) <= tol)) throw new Error(`row ${i}: ${p}`); });
            w.raw.forEach((v, k) => { if (!(Math.abs(v - got[i].raw[k]) <= 20 * tol)) throw new Error(`row ${i}`); });
        });
    ' "$1" "$work/want.json" "$2" 2>"$err" || fail "$1 is not the reference: $(grep Error: "$err")"
    n=$((n + 1))
}

# ---- the commands
expect 0 '"label":"normal"' score "$trees" "$work/rows.csv" --json
near "$out" 1e-12
expect 0 '"label":"normal"' score "$trees/model.xgb.json.gz" "$work/rows.csv" --json
near "$out" 1e-5
input=$work/rows.csv expect 0 '^line 2 ' score "$trees" -
expect 0 '33600 rows, 28 sensors, 3554 windows: [0-9]+ normal, [0-9]+ drift, [0-9]+ fault' score "$trees" "$demo"
grep -qE '^m[0-9]+ +[0-9]+ +(normal|drift|fault) +[0-9.]+ %$' "$out" || fail "rows: $(head -2 "$out")"
expect 0 ' fault$' score "$trees" "$demo" --only drift
grep -qE ' % *$' "$out" && grep -E ' %$' "$out" | grep -qv drift && fail "--only drift prints others"
expect 2 'no label "falt", did you mean "fault"\?' score "$trees" "$demo" --only falt
expect 2 'column "vibration" is missing' score "$trees" "$trees/config.json"
printf 'sensor,t,vibration,temperature,current,pressure\na,1,2,3,4,5\na,2,2,x,4,5\n' >"$work/bad.csv"
expect 1 'line 3.*temperature' score "$trees" "$work/bad.csv"
expect 1 'no such|No such' score "$trees" "$work/absent.csv"
expect 1 'is a model for "score", not for "classify"' classify "$trees" hello
expect 1 'is made of trees and reads no text|not supported' tokenize "$trees" hello
expect 1 'says how its windows are made' score "$data/hf/lstm-anomaly" "$demo"
expect 0 '^ *[0-9.]+ %  LABEL_[0-3]$' classify "$vit" --image "$data/signal/alpha.png"
expect 0 '"labels":\[\{"label":"LABEL_' classify "$vit" --image "$data/signal/baseline.jpg" --json
cp "$out" "$work/cli.json"
expect 1 'PNG and JPEG' classify "$vit" --image "$trees/config.json"
expect 2 'either TEXT' classify "$vit"
expect 2 'either TEXT' classify "$vit" a --image "$data/signal/baseline.jpg"
lstm=$data/sensors/lstm
expect 0 '33600 rows, 28 sensors, 3554 windows: 2428 normal, 538 drift, 588 fault' score "$lstm" "$demo"
expect 0 '^\{"rows":33600,"scores":3554,"sensors":28,"labels":\{"normal":2428,"drift":538,"fault":588\}\}' \
    score "$lstm" "$demo" --json --only fault
grep -c '"label":"fault"' "$out" | grep -qx 588 || fail "--only fault with --json"
"$SHOAL_BIN" score "$trees" "$demo" 2>"$err" | head -1 >"$out"
[ ! -s "$err" ] || fail "a reader that leaves: $(cat "$err")"

expect 0 '^parameters +360 trees, ' models inspect "$trees"
expect 0 '"architecture":"xgboost","task":"score".*"labels":\["normal","drift","fault"\]' \
    models inspect "$trees/model.xgb.json.gz" --json
expect 0 'for "classify-image"' models inspect "$vit" --quick

# ---- a GGUF file brings along what stands in front of its network
mkdir "$work/vit" && cp "$vit"/*.json "$vit/model.safetensors" "$work/vit/"
echo '{"size":{"height":32,"width":32},"image_mean":[0.1,0.2,0.3],"image_std":[0.4,0.5,0.6],"resample":2}' \
    >"$work/vit/preprocessor_config.json"
for model in "$work/vit" "$lstm"; do
    expect 0 ' bytes, ' quantize "$model" "$work/whole.gguf" --type f32
    for m in "$model" "$work/whole.gguf"; do
        if [ "$model" = "$lstm" ]; then
            "$SHOAL_BIN" score "$m" "$demo" --json
        else
            "$SHOAL_BIN" classify "$m" --image "$data/signal/alpha.png" --json
        fi >"$work/$([ "$m" = "$model" ] && echo folder || echo gguf).json" 2>"$err" || fail "$m: $(cat "$err")"
    done
    cmp "$work/folder.json" "$work/gguf.json" || fail "the GGUF file of $model answers otherwise"
    [ -s "$err" ] && fail "a note for what is told: $(cat "$err")"
done
"$SHOAL_BIN" classify "$vit" --image "$data/signal/alpha.png" --json >"$out" 2>/dev/null
"$SHOAL_BIN" classify "$work/vit" --image "$data/signal/alpha.png" --json | cmp -s - "$out" && fail "its steps change nothing"

# ---- the endpoints
cat >"$work/shoal.yaml" <<END
listen: 127.0.0.1:0
models:
  - name: trees
    path: $trees
  - name: eyes
    path: $vit
  - name: lstm
    path: $lstm
END
expect 0 'OK|ok|valid' serve -c "$work/shoal.yaml" --check
start_shoal "$work/shoal.yaml"
ask() { curl -s -m 30 "$@"; }
answer() { # PATTERN CURL-ARGS...
    local pattern=$1
    shift
    ask "$@" >"$out"
    grep -qE -e "$pattern" "$out" || fail "curl $*: $(head -c 400 "$out")"
    n=$((n + 1))
}
for _ in $(seq 100); do ask "$url/readyz" | grep -q '"ready"' && break; sleep 0.05; done
answer '"task":"score"' "$url/v1/models"
answer '"object":"list"' "$url/v1/score?model=trees" -H 'content-type: text/csv' --data-binary "@$work/rows.csv"
near "$out" 1e-12
node -e '
    const fs = require("fs"), [head, ...rows] = fs.readFileSync(process.argv[1], "utf8").trim().split("\n");
    const number = (r) => r.split(",").map(Number);
    fs.writeFileSync(process.argv[2], JSON.stringify({model: "trees", columns: head.split(","), rows: rows.map(number)}));
    fs.writeFileSync(process.argv[3], JSON.stringify({model: "trees", csv: fs.readFileSync(process.argv[1], "utf8")}));
' "$work/rows.csv" "$work/rows.json" "$work/csv.json"
json='content-type: application/json'
answer '"usage":\{"rows":50,"sensors":0\}' "$url/v1/score" -H "$json" -d "@$work/rows.json"
near "$out" 1e-12
answer '"scores":\{"normal":' "$url/v1/score" -H "$json" -d "@$work/csv.json"
near "$out" 1e-12
ask -D "$work/head" "$url/v1/score" -H "$json" -d "@$work/csv.json" >/dev/null
grep -qi '^x-shoal-cache: hit' "$work/head" || fail "the same rows again are computed again: $(cat "$work/head")"
gzip -dc "$demo" | awk -F, 'NR == 1 || $2 == "m003"' >"$work/one.csv"
answer '"data":\[\{"index":0,"sensor":"m003","time":"[0-9]+","line":[0-9]+,"row":[0-9]+,"label":"' \
    "$url/v1/score?model=trees" -H 'content-type: text/csv' --data-binary "@$work/one.csv"
"$SHOAL_BIN" score "$lstm" "$work/one.csv" --json --only drift | sed '/"rows"/d' >"$work/want.jsonl"
ask "$url/v1/score?model=lstm" -H 'content-type: text/csv' --data-binary "@$work/one.csv" >"$out"
node -e '
    const fs = require("fs"), lines = fs.readFileSync(process.argv[2], "utf8").trim().split("\n");
    const got = JSON.parse(fs.readFileSync(process.argv[1])).data.filter((r) => r.label === "drift");
    const of = (r) => JSON.stringify([r.sensor, r.time, r.line, r.row, Object.values(r.scores), r.raw]);
    if (got.length === 0 || got.length !== lines.length) throw new Error(`${got.length} rows`);
    lines.forEach((l, i) => { if (of(JSON.parse(l)) !== of(got[i])) throw new Error(l); });
' "$out" "$work/want.jsonl" 2>"$err" || fail "the LSTM's endpoint and command differ: $(grep Error: "$err")"
answer '"usage":\{"rows":2,"sensors":1\}' "$url/v1/score" -H "$json" \
    -d '{"model":"trees","columns":["sensor","vibration","temperature","current","pressure"],"rows":[["a",1,2,null,4],["a",1,2,3,4]]}'
answer 'line 3.*temperature' "$url/v1/score?model=trees" -H 'content-type: text/csv' --data-binary "@$work/bad.csv"
answer 'several models do this task' "$url/v1/score" -H "$json" -d '{"csv":"a"}'
answer '"type":"invalid_request_error"' "$url/v1/score" -H "$json" -d '{"model":"trees","csv":"a,b\n1,2\n"}'
answer 'rows\[0\]\[1\]' "$url/v1/score" -H "$json" -d '{"columns":["a","b"],"rows":[[1,true]]}'
answer 'rows\[1\]' "$url/v1/score" -H "$json" -d '{"columns":["a","b"],"rows":[[1,2],[1]]}'
answer 'either' "$url/v1/score" -H "$json" -d '{}'
answer '"code":"wrong_task".*|/v1/score' "$url/v1/classify" -H "$json" -d '{"model":"trees","input":"a"}'
grep -q '/v1/score' "$out" || fail "the wrong task's endpoint: $(cat "$out")"

{ printf '{"image":"'; base64 -w0 "$data/signal/baseline.jpg"; printf '"}'; } >"$work/image.json"
answer '"labels":\[\{"label":"LABEL_' "$url/v1/images/classify" -H "$json" -d "@$work/image.json"
same() {
    node -e '
        const fs = require("fs"), read = (p) => JSON.parse(fs.readFileSync(p));
        const a = read(process.argv[1]).data[0].labels, b = read(process.argv[2]).labels;
        if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(JSON.stringify([a, b]));
    ' "$out" "$work/cli.json" 2>"$err" || fail "the endpoint and the command differ: $(grep Error: "$err")"
    n=$((n + 1))
}
same
{ printf '{"model":"eyes","image":"data:image/jpeg;base64,'; base64 -w0 "$data/signal/baseline.jpg"; printf '"}'; } >"$work/image.json"
answer '"model":"eyes"' "$url/v1/images/classify" -H "$json" -d "@$work/image.json"
same
answer '"model":"eyes"' "$url/v1/images/classify?model=eyes" -H 'content-type: image/jpeg' --data-binary "@$data/signal/baseline.jpg"
same
answer '"labels":\[\{[^{]*\}\]' "$url/v1/images/classify?top_k=1" -H 'content-type: image/png' --data-binary "@$data/signal/alpha.png"
answer 'addresses are not fetched' "$url/v1/images/classify" -H "$json" -d '{"image":"http://localhost/a.png"}'
answer 'no base64' "$url/v1/images/classify" -H "$json" -d '{"image":"????"}'
answer 'PNG and JPEG' "$url/v1/images/classify" -H "$json" -d '{"image":"aGVsbG8gd29ybGQ="}'
head -c 500 "$data/signal/baseline.jpg" >"$work/cut.jpg"
answer '"type":"invalid_request_error"' "$url/v1/images/classify" -H 'content-type: image/jpeg' --data-binary "@$work/cut.jpg"
answer '/v1/images/classify' "$url/v1/score" -H "$json" -d '{"model":"eyes","csv":"a\n1\n"}'
answer 'shoal_requests_total\{endpoint="score"' "$url/metrics"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"
echo "$n checks"
