#!/usr/bin/env bash
# Measure what good clients wait for beside hostile ones (tests/attack) and write bench/runs/DATE-hostile-COMMIT.md.
#
#   scripts/bench_hostile.sh [FILTER]      ATTACK_SECONDS=5: how long each case is measured
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${SHOAL_BIN:-$PWD/build/shoal}
commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
git diff --quiet HEAD 2>/dev/null || commit=$commit-modified
out=bench/runs/$(date -u +%Y-%m-%d)-hostile-$commit.md
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
cat >"$work/c.yaml" <<YAML
listen: "127.0.0.1:0"
also_listen: ["unix:$work/s.sock"]
limits: {max_connections: 512}
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-chat-s}, {name: home-embed}, {name: home-ears}]
YAML
SHOAL_STATE=$work/state "$bin" serve -c "$work/c.yaml" >"$work/ready" 2>"$work/log" &
server=$!
until url=$(grep -o 'http://[0-9.]*:[0-9]*' "$work/ready"); do
    kill -0 "$server" || { tail -3 "$work/log" >&2; exit 1; }
    sleep 0.1
done
{
    echo "# Good clients beside hostile ones, $(date -u +%Y-%m-%d)"
    echo
    echo "Commit $commit; $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) cores, load average $(cut -d' ' -f1 /proc/loadavg) before the run."
    echo "8 hostile processes a case (tests/attack/cases.py); two good clients' worth of requests in turn, a new connection each:"
    echo "\`GET /healthz\` and \`POST /v1/classify\` (home-intent, not cached). Targets on two quiet cores: p99 100 ms and 250 ms."
    echo "The hostile clients and the good one run on the same cores as the server."
    echo
} >"$out"
python3 tests/attack/attack.py bench "$url" "$work/s.sock" "$(pgrep -P "$server" -x shoal-gateway)" "${1:-}" | tee -a "$out"
echo "written: $out"
