#!/usr/bin/env bash
# What scripts/ promises: a start is not mistaken for an earlier one, a copied tree builds.
source "$(dirname "$0")/lib.sh"

# ---- serving_start gives the address of the server that it started, not what the file held before
(
    set -e
    bin=$SHOAL_BIN
    source scripts/serving.sh
    for _ in 1 2 3 4 5; do
        echo "ready http://127.0.0.1:1 replicas=5" >"$serving_ready"
        serving_start shoal.yaml
        curl -sf "$url/readyz" >/dev/null || { echo "$url does not answer"; exit 1; }
        serving_stop
    done
    : >"$work/broken.yaml" && echo 'models: 7' >"$work/broken.yaml"
    ! serving_start "$work/broken.yaml" 2>"$work/said" || { echo "a broken configuration starts"; exit 1; }
    grep -q 'broken.yaml' "$work/said" || { echo "a failed start says: $(cat "$work/said")"; exit 1; }
) || fail "scripts/serving.sh"

# ---- a tree that was copied with its build folder is configured for its new place
mkdir "$work/tree"
cp -r CMakeLists.txt CMakePresets.json cmake include proto scripts src tests "$work/tree" 2>/dev/null
mkdir -p "$work/tree/build/fuzz/corpus"
cp build/CMakeCache.txt "$work/tree/build/" || fail "no build folder to copy"
cp -r build/inc "$work/tree/build/"
: >"$work/tree/build/fuzz/corpus/kept"
"$work/tree/scripts/configure.sh" release >"$work/said" 2>&1 || fail "a copied tree: $(tail -3 "$work/said")"
grep -q 'build was made for .* building afresh' "$work/said" || fail "a copied tree says: $(cat "$work/said")"
grep -qF "CMAKE_HOME_DIRECTORY:INTERNAL=$work/tree" "$work/tree/build/CMakeCache.txt" || fail "still the old place"
[ "$(readlink "$work/tree/build/inc/base/base")" = "$work/tree/src/base" ] || fail "includes from the old place"
[ -f "$work/tree/build/fuzz/corpus/kept" ] || fail "the corpus is gone"
"$work/tree/scripts/configure.sh" release >"$work/said" 2>&1 && [ ! -s "$work/said" ] || fail "the second time: $(cat "$work/said")"
echo "five starts, one copied tree"
