#!/usr/bin/env bash
# Hold the list of modules in CMakeLists.txt to the includes of src:
#
#   scripts/modules.sh            print what each module uses, as its files' includes say
#   scripts/modules.sh --check    exit 1 and print the lines to change when CMakeLists.txt says otherwise
#
# A module uses another when one of its files includes "OTHER/...", whose place is src/AREA/OTHER; "proto" stands for the
# headers that protoc-c makes, and in tools "shoal.h" for the library.
set -euo pipefail
cd "${SHOAL_TREE:-$(dirname "$0")/..}"
export LC_ALL=C

# "AREA MODULE USED" a line, of the includes.
included() {
    grep -rEo --include='*.[ch]' '^ *# *include "[a-z0-9_]+(\.h|/[a-zA-Z0-9_/.-]+)"' src |
        sed -E 's/^src\/([a-z]+)\/([a-z0-9]+)\/[^:]*: *# *include "([^"]+)"/\1 \2 \3/' |
        while read -r area module file; do
            used=${file%%/*}
            case $file in
            shoal.h) [ "$area" = tools ] && echo "$area $module library"; continue ;;
            *.pb-c.h) used=proto ;;
            */*) ;;
            *) continue ;;
            esac
            [ "$used" = "$module" ] || echo "$area $module $used"
        done | sort -u
}

# "MODULE USED" a line, of CMakeLists.txt.
declared() {
    tr '()' '\n ' <CMakeLists.txt | tr -s ' \n' '\n' | awk '
        $1 == "shoal_module" { getline module; uses = 0; next }
        $1 ~ /^(LIBS|SOURCES)$/ { uses = 0; next }
        $1 == "USES" { uses = 1; next }
        $1 ~ /^(shoal_area|add_dependencies|include|#)$/ { uses = 0; next }
        uses { print module, $1 }' | sort -u
}

case ${1:-} in
"") included | awk '{ uses[$1 "/" $2] = uses[$1 "/" $2] " " $3 } END { for (m in uses) print m ":" uses[m] }' | sort ;;
--check)
    wrong=$(diff <(included | cut -d' ' -f2- | sort -u) <(declared) | sed -nE '
        s/^< ([a-z0-9]+) (.*)/CMakeLists.txt: shoal_module(\1 USES ...) lacks \2, which its files include/p
        s/^> ([a-z0-9]+) (.*)/CMakeLists.txt: shoal_module(\1 USES ... \2): no file of \1 includes it/p' || true)
    [ -z "$wrong" ] || { echo "$wrong"; exit 1; }
    echo "modules: CMakeLists.txt says what the includes say"
    ;;
*) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
