#!/usr/bin/env bash
# CMakeLists.txt names just the modules that the files of each include, and an include too many or too few is told.
. "$(dirname "$0")/lib.sh"

scripts/modules.sh --check || fail "CMakeLists.txt and the includes differ"

mkdir -p "$work/tree"
cp -r src CMakeLists.txt "$work/tree/"
sed -i 's/^shoal_module(sql USES base/shoal_module(sql USES base yaml/' "$work/tree/CMakeLists.txt"
echo '#include "wire/loop.h"' >>"$work/tree/src/core/yaml/yaml.c"
SHOAL_TREE=$work/tree scripts/modules.sh --check >"$work/said" && fail "differences pass"
grep -q 'shoal_module(sql USES ... yaml): no file of sql includes it' "$work/said" || fail "a module too many is not told"
grep -q 'shoal_module(yaml USES ...) lacks wire, which its files include' "$work/said" || fail "a missing module is not told"
[ "$(wc -l <"$work/said")" = 2 ] || fail "told: $(cat "$work/said")"
