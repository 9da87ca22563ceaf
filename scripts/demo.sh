#!/usr/bin/env bash
# Start the home cluster on a free port, send five real requests, print answers, routes and
# milliseconds, and stop it again.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${SHOAL_BIN:-build/shoal}
log=$(mktemp)
ready=$(mktemp)
"$bin" serve -c shoal.yaml --port 0 >"$ready" 2>"$log" &
server=$!
cleanup() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -f "$log" "$ready"
}
trap cleanup EXIT
for _ in $(seq 100); do
    url=$(grep -o 'http://[0-9.:]*' "$ready" | head -1 || true)
    [ -n "$url" ] && break
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
    sleep 0.05
done
[ -n "${url:-}" ] || { echo "demo: the cluster did not become ready; its log:" >&2; cat "$log" >&2; exit 1; }
echo "the home cluster serves at $url"

"$bin" demo "$url"
