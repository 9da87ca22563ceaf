#!/usr/bin/env bash
# `shoal bench MODEL --threads 1,2`: a row for each test and number of threads, as a table, JSON and a chart; and what it
# refuses. No speed is held to anything.
source "$(dirname "$0")/lib.sh"
bench() { "$SHOAL_BIN" bench "$@"; }
model="$work/a<b&c.gguf"
"$SHOAL_BIN" debug make-model --shape llama-24m --type q8_0 -c 256 -o "$model" >/dev/null 2>&1 || fail "make-model"

# ---- JSON: fields, and what follows from others
bench "$model" -p 8 -n 4 -r 2 --threads 2,1 --json --svg "$work/out.svg" >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
cat >"$work/check.py" <<'PY'
import json, os, sys, xml.dom.minidom
o = json.load(open(sys.argv[1]))
rows = o["results"]
assert o["threads"] == [1, 2] and o["limits"]["of"] == "int8" and len(o["model"]["sha256"]) == 64, o
assert [(r["test"], r["threads"]) for r in rows] == [("pp8", 1), ("pp8", 2), ("tg4", 1), ("tg4", 2)], rows
def near(a, b): return abs(a - b) <= 0.002 * abs(b) + 0.0002
for i, r in enumerate(rows):
    base = rows[i // 2 * 2]
    assert near(r["speed_up"], base["ms"] / r["ms"]) and near(r["efficiency"], r["speed_up"] / r["threads"]), r
    assert near(r["tokens_per_s"], r["tokens"] / r["ms"] * 1e3), r
    assert r["min_tokens_per_s"] <= r["tokens_per_s"] <= r["max_tokens_per_s"] and r["runs"] >= 2, r
    assert r["cores_used"] > 0 and r["cpu_s_per_token"] > 0, r
    assert near(r["share_of_reading"], r["bytes"] / r["ms"] * 1e3 / r["read_limit_bytes_per_s"]), r
    assert near(r["share_of_multiply_adds"], r["multiply_adds"] / r["ms"] * 1e3 / r["multiply_add_limit_per_s"]), r
    assert r["beyond_cores"] == (r["threads"] > o["machine"]["cores"]), r
svg = xml.dom.minidom.parse(sys.argv[2])
assert len(svg.getElementsByTagName("polyline")) == 4
text = " ".join(t.firstChild.data for t in svg.getElementsByTagName("text"))
for wanted in ["Speed-up against 1 thread", "Efficiency", "threads offered", "pp8: ", "tg4: ", "Q8_0"]:
    assert wanted in text, (wanted, text)
PY
if command -v python3 >/dev/null; then
    python3 "$work/check.py" "$work/out" "$work/out.svg" || fail "JSON or chart: $(cat "$work/out")"
fi
[ -z "$(<"$work/err")" ] || [ "$(nproc)" -lt 2 ] || fail "a pipe hears of progress: $(cat "$work/err")"

# ---- the table: no line is wider than 80 columns; more threads than cores are said
SHOAL_CORES=2 bench "$model" -p 8 -n 4 -r 1 --threads 1,2,3 >"$work/out" 2>"$work/err" || fail "the table"
grep -qx 'note: 3 threads are more than the 2 cores here: they take turns' "$work/err" || fail "$(cat "$work/err")"
[ "$(grep -cE '^ +[123] +[0-9.]+ +[0-9.]+ +[0-9]+ % +[0-9.]+ +[0-9.]+ +[0-9]+ % of +[0-9]+ +[0-9]+ % of +[0-9.]+ [GT]$' "$work/out")" = 6 ] ||
    fail "rows: $(cat "$work/out")"
[ "$(grep -cE '^ +1 .* 1\.00 +100 % ' "$work/out")" = 2 ] || fail "one thread is the measure: $(cat "$work/out")"
tail -n +4 "$work/out" | awk 'length > 80 { exit 1 }' || fail "wider than 80 columns: $(cat "$work/out")"
grep -q 'THREADS: offered to the engine' "$work/out" || fail "it does not say what THREADS means"
[ "$(SHOAL_CORES=1 bench "$model" -p 8 -n 0 -r 1 --threads 1,2 --json 2>/dev/null | grep -o '"beyond_cores":[a-z]*' | paste -sd ' ')" = \
    '"beyond_cores":false "beyond_cores":true' ] || fail "beyond_cores"
if command -v script >/dev/null; then
    script -qefc "stty cols 80; '$SHOAL_BIN' bench '$model' -p 8 -n 0 -r 1 --threads 1,2" "$work/said" </dev/null >/dev/null 2>&1 || fail "on a terminal"
    grep -qE $'\r\033\\[Kpp8, 2 threads: measuring, round 1 of 1' "$work/said" || fail "no progress on a terminal: $(cat -v "$work/said")"
fi

# ---- encoders by shape; one number is no comparison
[ "$(bench home-intent --shapes 1x8,3x5 -r 1 --threads 1,2 --json 2>/dev/null | grep -oE '"test":"[^"]*","threads":[0-9]' | paste -sd ' ')" = \
    '"test":"enc 1x8","threads":1 "test":"enc 1x8","threads":2 "test":"enc 3x5","threads":1 "test":"enc 3x5","threads":2' ] ||
    fail "shapes of an encoder"
bench home-intent --shapes 1x8 -r 1 --threads 1 --json | grep -q '"threads":1,.*"limits":{"multiply_adds_per_s":' || fail "one number"

refused() {
    bench "${@:2}" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] && [ ! -s "$work/out" ] || fail "bench ${*:2} is taken"
    grep -qF -- "$1" "$work/err" || fail "bench ${*:2}: $(cat "$work/err")"
}
for list in 0,1 4,,2 1,65 65 ,1 1, x ''; do refused '--threads wants a whole number from 0 to 64, or up to 16' "$model" --threads "$list"; done
refused '--threads 1,1 names 1 twice' "$model" --threads 1,1
refused '--threads 1,2 compares the speeds of a MODEL' --threads 1,2
refused '--threads 1,2 compares the speeds of a MODEL' --server http://127.0.0.1:1 --threads 1,2
refused '--svg draws how a model scales' "$model" --svg "$work/x.svg"
refused '--svg draws how a model scales' "$model" --threads 2 --svg "$work/x.svg"
bench "$model" -p 8 -n 0 -r 1 --threads 1,2 --svg "$work/no/such.svg" >"$work/out" 2>"$work/err" && fail "a chart in no folder"
grep -q 'no/such.svg' "$work/err" && [ ! -s "$work/out" ] || fail "it measured first: $(cat "$work/err")"
echo "rows, chart and refusals"
