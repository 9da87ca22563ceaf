#!/usr/bin/env bash
# make dist: the source archive of a commit has the same bytes wherever and whenever it is made, and holds what is committed.
# long: packs the whole tree, with its models, twice
source "$(dirname "$0")/lib.sh"
git rev-parse HEAD >/dev/null 2>&1 || skip "this is no clone of git"
for folder in a "another folder"; do
    git clone -q --no-checkout . "$work/$folder" && git -C "$work/$folder" checkout -q --detach "$(git rev-parse HEAD)" || fail "a clone"
    (umask $([ "$folder" = a ] && echo 022 || echo 077); cd "$work/$folder" && TZ=Pacific/Auckland SHOAL_DIST=source scripts/dist.sh) \
        >"$work/said" 2>&1 || fail "make dist: $(tail -1 "$work/said")"
    sleep 1.1 # another second of the clock
done
archive=$(cd "$work/a/build/dist" && ls -- *.tar.gz)
cmp "$work/a/build/dist/$archive" "$work/another folder/build/dist/$archive" || fail "the archives differ"
(cd "$work/a/build/dist" && sha256sum -c --quiet SHA256SUMS) || fail "SHA256SUMS"
tar -tzf "$work/a/build/dist/$archive" | grep -v '/$' | sed 's|^shoal-[0-9.]*/||' | sort >"$work/packed"
git ls-tree -r --name-only HEAD -z | tr '\0' '\n' | sort | diff - "$work/packed" >"$work/differ" || fail "committed (<) and packed (>): $(head -3 "$work/differ")"
echo x >>"$work/a/README.md"
(cd "$work/a" && SHOAL_DIST=source scripts/dist.sh) >"$work/said" 2>&1 && fail "a tree with changes is packed"
grep -q 'commit first' "$work/said" || fail "a tree with changes: $(cat "$work/said")"
echo "$archive, $(wc -l <"$work/packed") files"
