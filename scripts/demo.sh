#!/usr/bin/env bash
# Start the home cluster on a free port, send five real requests, print answers, routes and
# milliseconds, and stop it again.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${SHOAL_BIN:-build/shoal}
source scripts/serving.sh

serving_start shoal.yaml
echo "the home cluster serves at $url"

"$bin" demo "$url"
