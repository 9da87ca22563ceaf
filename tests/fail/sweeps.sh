#!/usr/bin/env bash
# Let allocations and writes fail, one after the other, and see that nothing crashes, hangs, leaks or lies:
#
#     tests/fail/sweeps.sh whole        every place of every command, fuzz target and request (make fail)
#     tests/fail/sweeps.sh short        some of each, always the same ones (make long, as tests/e2e/fail.sh)
#     tests/fail/sweeps.sh short 3      others; whole and short take parts as well: cli fuzz serve
#
# A fault is printed with the stack of the allocation and the line that repeats it.
set -u
cd "$(dirname "$0")/../.."
how=${1:-short} offset=0
shift $(($# > 0))
[[ ${1:-} =~ ^[0-9]+$ ]] && offset=$1 && shift
parts=${*:-cli fuzz serve}
export SHOAL_BIN=${SHOAL_BIN:-$PWD/build/shoal}
build=$(dirname "$SHOAL_BIN")
data=tests/data gguf=$build/tests/gguf
[ -x "$build/fail/fail_sweep" ] || { echo "$build/fail/fail_sweep is not built"; exit 77; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
places=24 requests=12 # of the short form
[ "$how" = short ] && few=(-m $places -b "$offset") || few=()

sweep() { "$build/fail/fail_sweep" "${few[@]}" -l "$@" 2>&1; }

# one LABEL [OPTIONS] -- COMMAND...: a failing allocation, and on a whole sweep also all from there on
one() {
    local label=$1
    shift
    sweep "$label" "$@"
    [ "$how" = short ] || sweep "$label" -o "$@"
}

part_cli() {
    local shoal=$SHOAL_BIN text="hello there you"
    one version -- "$shoal" version --json
    one help -- "$shoal" run --help
    one models -- "$shoal" models --json
    one tokenize -- "$shoal" tokenize $data/hf/bert-intent "$text" --json
    one "tokenize gguf" -- "$shoal" tokenize $gguf/llama-gqa.gguf "$text" --json
    one classify -- "$shoal" classify $data/hf/bert-intent "$text" --json
    one "classify home" -- "$shoal" classify home-intent "$text" --json
    one tag -- "$shoal" tag $data/hf/bert-ner "$text" --json
    one embed -- "$shoal" embed $gguf/minilm-embed.gguf "$text" --json
    one logits -- "$shoal" logits $data/hf/llama-gqa --ids 1,592 --json
    one "logits convolutions" -- "$shoal" logits $data/hf/lfm2-conv --ids 1,2 --json
    one "logits experts" -- "$shoal" logits $data/hf/qwen3-moe --ids 1,2 --json
    one "logits positions" -- "$shoal" logits $data/hf/gpt2 --ids 1,2 --json
    one "classify relative" -- "$shoal" classify $data/hf/deberta-v3-nli "$text" --json
    one transcribe -- "$shoal" transcribe models/home-ears.gguf $data/speech/wav/08-lights-on.wav --format verbose_json
    one "inspect ctranslate2" -- "$shoal" models inspect $data/ct2/int8_float16 --quick --json
    one "embed windows" -- "$shoal" embed $data/hf/modernbert-embed "$text" --json
    one "score trees" -- "$shoal" score $data/sensors/trees $data/sensors/short.csv --json
    one "score lstm" -- "$shoal" score $data/sensors/lstm $data/sensors/short.csv
    one "classify image" -- "$shoal" classify $data/hf/vit-tiny --image $data/signal/baseline.jpg --json
    one "inspect trees" -- "$shoal" models inspect $data/sensors/trees
    one "route list" -- "$shoal" route list -c shoal.yaml --json
    one "config check" -- "$shoal" config check shoal.yaml
    one "config show" -- "$shoal" config show tests/fuzz/seeds/fuzz_rules_config/keys.yaml
    # A folder with a model and the devices of a home.
    local own=$(mktemp -d)
    ln -s "$PWD/$data/hf/llama-gqa" "$own/talker"
    head -3 tests/fuzz/seeds/fuzz_serve_home_export/home | tail -1 >"$own/states.json"
    one init -- "$shoal" init "$own" --force --json
    one "serve model" -- "$shoal" serve --check "$own/talker" $data/hf/bert-intent
    rm -r "$own"
    one "pipeline check" -- "$shoal" pipeline check shoal.yaml --json
    one "pipeline graph" -f g.svg -- "$shoal" pipeline graph shoal.yaml --svg {}/g.svg
    one run -- "$shoal" run $data/hf/llama-gqa -p "$text" -n 6 --temp 0
    # A store of packed weights, which the program reads and does not trust.
    local state=$(mktemp -d) pid
    "$shoal" worker --model $gguf/llama-gqa.gguf --address "unix:$state/socket" --packed "$state/packed" \
        --packed-min-mb 0 --log-level off &
    pid=$!
    for _ in $(seq 200); do ls "$state"/packed/*.packed >/dev/null 2>&1 && break || sleep 0.05; done
    kill $pid
    wait $pid
    SHOAL_STATE=$state one "run packed" -- "$shoal" run $gguf/llama-gqa.gguf -p "$text" -n 6 --temp 0
    rm -r "$state"
    one "run home" -- "$shoal" run home-chat-s -p "turn on the light" -n 6 --temp 0
    # A server's state, to a backup and back. The databases were made by other schemas: these commands do not read them.
    state=$(mktemp -d)
    mkdir "$state/s"
    SHOAL_STATE=$state/s "$shoal" ca init >/dev/null
    python3 -c 'import sqlite3, sys
for name in ("sessions", "collections"):
    db = sqlite3.connect(f"{sys.argv[1]}/{name}.db")
    db.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t(x); INSERT INTO t VALUES(1)")' "$state/s"
    printf 'manifest: %s\nmodels: [{name: home-intent}]\n' "$PWD/models/models.json" >"$state/shoal.yaml"
    one backup -p "shoal backup" -- tests/fail/backup.sh "$state/s" "$state/shoal.yaml" "$state/at"
    one restore -p "shoal restore" -- tests/fail/backup.sh "$state/s" "$state/shoal.yaml" "$state/at"
    one "backup writes" -w -p "shoal backup" -- tests/fail/backup.sh "$state/s" "$state/shoal.yaml" "$state/at"
    one "restore writes" -w -p "shoal restore" -- tests/fail/backup.sh "$state/s" "$state/shoal.yaml" "$state/at"
    rm -r "$state"
    one "bench model" -a -- "$shoal" bench $data/hf/llama-gqa -p 4 -n 4 -r 1
    one "run adapter" -- "$shoal" run $data/hf/llama-gqa -p "$text" -n 4 --temp 0 --adapter $data/adapters/llama-one:0.5
    one quantize -f q.gguf -- "$shoal" quantize $data/hf/llama-gqa {}/q.gguf --type q8_0
    one "quantize learns" -f q.gguf -- "$shoal" quantize $data/hf/llama-gqa {}/q.gguf --type q4_k \
        --override 'blk.*.attn_q=q6_k' --importance $data/home-eval/README.md
    one "make model" -f m.gguf -- "$shoal" debug make-model --shape llama-24m --type q8_0 -o {}/m.gguf
    one "quantize writes" -w -f q.gguf -- "$shoal" quantize $data/hf/llama-gqa {}/q.gguf --type q8_0
    one "classify writes" -w -- "$shoal" classify $data/hf/bert-intent "$text" --json
    # A download, from a server that sends whole files.
    local hub=$(mktemp -d) port
    cp $gguf/llama-gqa.gguf "$hub/m.gguf"
    python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$hub" >"$hub/port" 2>/dev/null &
    pid=$!
    for _ in $(seq 200); do port=$(sed -nE 's/.*port ([0-9]+).*/\1/p' "$hub/port") && [ -n "$port" ] && break || sleep 0.05; done
    one "pull writes" -w -p "shoal pull" -- tests/fail/pull.sh "http://127.0.0.1:$port/m.gguf" "$hub/m.gguf" {}
    kill $pid
    wait $pid 2>/dev/null
    rm -r "$hub"
}
part_fuzz() {
    for target in "$build"/fuzz/fuzz_*; do
        [ -f "tests/fuzz/$(basename "$target").c" ] || continue # one that was renamed since it was built
        [[ $target != */fuzz_signal_codec ]] || continue # libvorbis and libsndfile use memory that they did not get
        [[ $target != */fuzz_trust_request ]] || continue # so does OpenSSL, where it finds its algorithms
        [[ $target != */fuzz_sessions_stored ]] || continue # the same
        options=()
        # libwslay forgets a frame that it has no memory to queue, and the message in it.
        [[ $target != */fuzz_http_websocket ]] || options=(-k 2)
        [ -f "$target" ] && [ -x "$target" ] && one "$(basename "$target")" "${options[@]}" -- "$target" "tests/fuzz/seeds/$(basename "$target")"
    done
}
part_serve() {
    if [ "$how" = short ]; then
        tests/fail/serve.sh $requests "$offset" gateway dialects worker documents sessions export
    else
        tests/fail/serve.sh
    fi
}

# A sample's log holds its faults alone: hundreds of sweeps without one would hide them.
show() { if [ "$how" = short ] && [ ! -t 1 ]; then cat >"$log"; else tee "$log"; fi; }
for part in $parts; do "part_$part"; done | show
tried=$(sed -nE 's/.*: ([0-9]+) of [0-9]+ (allocations|writes).*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
sweeps=$(grep -cE ': [0-9]+ of [0-9]+ (allocations|writes)' "$log")
faults=$(grep -c '^FAIL ' "$log")
grep -A20 '^FAIL ' "$log" | head -60 # at the end, where they are seen
echo "$tried failing allocations and writes tried in $sweeps sweeps, $faults faults"
[ "$faults" -eq 0 ] && [ "$sweeps" -gt 0 ]
