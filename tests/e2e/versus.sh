#!/usr/bin/env bash
# bench/versus with stand-ins for the other engines: both sides asked in turn, what comes of it as a table, a chart and
# JSON, and what it refuses. No speed is held to anything.
# long: it measures
source "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "Node.js is not installed"
versus() { SHOAL_BIN=$SHOAL_BIN node bench/versus --out "$work/v" --rounds 2 --repeat 1 --requests 4 "$@" >"$work/out" 2>"$work/err"; }
"$SHOAL_BIN" debug make-model --shape llama-24m --type q4_0 -c 512 -o "$work/m.gguf" >/dev/null 2>&1 || fail "make-model"
"$SHOAL_BIN" debug make-model --shape minilm --type q8_0 -o "$work/e.gguf" >/dev/null 2>&1 || fail "make-model"

# One that knows no depths, as its help says, and one that does.
cat >"$work/old-bench" <<'END'
#!/bin/sh
echo "$@" >>"$0.log"
[ "$1" = --help ] && echo "-gp <pp,tg>" && exit
case "$*" in
*-gp*) echo '[{"n_prompt":32,"n_gen":4,"avg_ts":5,"samples_ts":[5]}]' ;;
*) echo '[{"n_prompt":8,"n_gen":0,"avg_ts":100,"samples_ts":[100]},{"n_prompt":0,"n_gen":4,"avg_ts":10,"samples_ts":[10]}]' ;;
esac
END
sed 's/-gp <pp,tg>/--n-depth/; s/\*-gp\*/*-d*/; s/"n_prompt":32,"n_gen":4/"n_prompt":0,"n_gen":4,"n_depth":32/' "$work/old-bench" >"$work/new-bench"
# Shoal itself, as the other server is started.
cat >"$work/server" <<END
#!/bin/sh
printf 'models:\n  - {name: it, path: %s, threads: %s}\n' "\$2" "\$4" >"$work/other.yaml"
while [ "\$1" != --port ]; do shift; done
exec "$SHOAL_BIN" serve -c "$work/other.yaml" --port "\$2"
END
chmod +x "$work"/*-bench "$work/server"

for bench in old-bench new-bench; do
    versus --llama-bench "$work/$bench" --model "$work/m.gguf" --prompt 8 --generate 4 --depth 32 --llama-flags '-fa 1' ||
        fail "versus: $(cat "$work/err")"
    for test in pp8 tg4 tg4@d32; do
        grep -qE "^\| m \| 1 \| $test \| [0-9.]+ \| [0-9.]+ \| llama-bench \| \*\*[0-9.]+\*\* \| [0-9.]+ to [0-9.]+ \|$" "$work/v.md" ||
            fail "$bench: no row of $test: $(cat "$work/v.md")"
    done
    grep -q -- '-fa 1' "$work/$bench.log" || fail "the flags did not arrive"
    cmp -s "$work/out" <(cat "$work/v.md"; echo) || fail "another table printed than written"
done
node -e '
    const { rows, pairs } = JSON.parse(require("fs").readFileSync(process.argv[1]));
    if (rows.length != 3 || pairs.some(p => p.ours.length != 2 || p.theirs.length != 2)) throw new Error("rounds");
    const tg = rows.find(r => r.test == "tg4");
    if (tg.theirs != 10 || !(tg.least <= tg.ratio && tg.ratio <= tg.most)) throw new Error(JSON.stringify(tg));
' "$work/v.json" || fail "JSON"
python3 -c 'import sys, xml.dom.minidom as x; d = x.parse(sys.argv[1]); assert len(d.getElementsByTagName("rect")) == 4' "$work/v.svg" ||
    fail "the chart is no SVG with three bars"

versus --llama-server "$work/server" --model "$work/m.gguf" --clients 1,2 || fail "served: $(cat "$work/err")"
grep -qE '^\| m \| 1 \| 2 clients: tokens/s \| [0-9.]+ \| [0-9.]+ \| llama-server \|' "$work/v.md" || fail "$(cat "$work/v.md")"

# ---- an encoder as ONNX: what is written has what it should have (bench/README.md says how it was held to ours)
cat >"$work/export.mjs" <<END
import { exportBert, readGguf } from "$PWD/bench/versus.d/onnx.mjs";
const made = exportBert("$work/e.gguf", "$work/e.onnx"), sizes = JSON.stringify(made);
if (sizes != '{"width":384,"layers":6,"heads":12,"ff":1536}') throw new Error(sizes);
const norm = readGguf("$work/e.gguf").floats("blk.0.attn_output_norm.weight");
if (norm.length != 384 || norm.some((x) => x != 1)) throw new Error("a norm");
END
node "$work/export.mjs" || fail "the export"
[ "$(stat -c %s "$work/e.onnx")" -gt 50000000 ] || fail "an ONNX file of $(stat -c %s "$work/e.onnx") bytes"
[ "$(grep -ao QAttention "$work/e.onnx" | wc -l)" = 6 ] || fail "layers of the export"

refused() {
    local why=$1
    shift
    versus "$@" && fail "versus $* is taken"
    grep -q -- "$why" "$work/err" || fail "versus $*: $(cat "$work/err")"
}
refused 'nobody to compare with'
refused 'there is no such file' --llama-bench "$work/none"
refused 'is no option' --lama "$work/none"
refused '--threads wants' --llama-bench "$work/old-bench" --threads 0
refused '--shapes wants' --llama-bench "$work/old-bench" --shapes 8
printf '#!/bin/sh\necho broken >&2\nexit 3\n' >"$work/old-bench"
refused 'old-bench .*broken' --llama-bench "$work/old-bench" --model "$work/m.gguf" --prompt 8 --generate 4 --depth 0
echo "alternated, drawn and refused"
