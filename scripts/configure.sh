#!/usr/bin/env bash
# Configure one preset of CMakePresets.json, quietly:
#
#   scripts/configure.sh release|debug|asan|tsan|fuzz
#
# A build folder that was made elsewhere (the tree was moved or copied with it) names its old place in
# every command: what CMake made there goes, and the folder is configured for this place. Other things in
# it, such as the fuzzers' corpus, stay.
#
# Where neither the presets nor the system's packages have changed since, it does nothing (4 s of CPU less): Ninja configures
# again what other files ask for.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
[ "$preset" = release ] && dir=build || dir=build/$preset
cache=$dir/CMakeCache.txt
if [ -f "$cache" ]; then
    made_in=$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' "$cache")
    made_from=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
    if [ "$made_in" != "$(cd "$dir" && pwd -P)" ] || [ "$made_from" != "$(pwd -P)" ]; then
        echo "configure: $dir was made for ${made_from:-another place}, which is not here: building afresh"
        rm -rf "$cache" "$dir"/{CMakeFiles,build.ninja,.ninja_deps,.ninja_log,inc}
    fi
fi
if [ -f "$cache" ] && [ "$dir/build.ninja" -nt CMakePresets.json ] && [ "$dir/build.ninja" -nt /var/lib/dpkg/status ]; then
    exit 0
fi
mkdir -p "$dir"
log=$dir/configure.log
cmake --preset "$preset" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "configure: CMake gave up on $dir (above); after a change of compiler or packages \"make clean\" helps" >&2
    exit 1
}
