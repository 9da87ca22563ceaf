#!/usr/bin/env bash
# Run the home evaluation on a free port and write docs/home-eval.md and docs/home-eval.svg.
#
#   scripts/home_eval.sh          held-back requests and sensor lines as counts only, for use while building
#   scripts/home_eval.sh --all    with their failures, for a release
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${SHOAL_BIN:-build/shoal}
set=tests/data/home-eval
hidden=()
[ "${1:-}" = --all ] && hidden=(--failures)
source scripts/serving.sh
serving_start shoal.yaml

# section TITLE ARGS...
section() {
    local title=$1
    shift
    echo
    "$bin" eval --server "$url" --markdown --title "$title" "$@"
}
out=$(mktemp)
{
    echo "# The home cluster, evaluated"
    echo
    echo "For those who ask how often the home is right, and what it gets wrong."
    echo
    echo "Written by scripts/home_eval.sh: commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)," \
        "$(nproc) cores, $(date -u +%Y-%m-%d). The verdicts, and how to run this, are in"
    echo "[evaluation.md](evaluation.md); the cases in \`$set\`, the tricks in \`eval/tricks.jsonl\`. A case counts for each of its tags; times are those of"
    echo "one client on this machine. \`many\` are homes of 256 devices, most others have about 12."
    echo
    echo "![verdicts by tag](home-eval.svg)"
    section "All requests" --svg docs/home-eval.svg $set/dev.jsonl $set/dev2.jsonl $set/held.jsonl
    section "Open requests" --failures $set/dev.jsonl
    section "Open requests, the hard set" --failures $set/dev2.jsonl
    section "Held-back requests" "${hidden[@]}" $set/held.jsonl
    section "Tricks" --failures eval/tricks.jsonl
    section "Sensor lines" "${hidden[@]}" $set/sensors.jsonl
} >"$out"
cat "$out" >docs/home-eval.md
rm -f "$out"
serving_stop
grep -A4 '^## ' docs/home-eval.md | grep -E '^(##|\| all)'
