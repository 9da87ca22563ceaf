#!/usr/bin/env bash
# The questions of bench/retrieval over docs/, with the bundled home-embed: hybrid search ranks the right page first at
# least as often as vectors alone.
# long: half a minute of CPU
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
cat >"$work/shoal.yaml" <<END
manifest: $PWD/models/models.json
retrieval: {memory_mb: 64, max_document_mb: 4}
models: [{name: home-embed}]
END
start_shoal "$work/shoal.yaml"
"$SHOAL_BIN" docs add docs docs/*.md -m home-embed -s "$url" >"$work/out" 2>&1 || fail "docs add: $(tail -n 1 "$work/out")"
python3 bench/retrieval/rank.py "$url" docs >"$work/ranks" || fail "rank.py"
first() { sed -n "s/^$1 \([0-9]*\) .*/\1/p" "$work/ranks"; }
among() { sed -n "s/^$1 [0-9]* \([0-9]*\) .*/\1/p" "$work/ranks"; }
[ "$(first hybrid)" -ge "$(first vector)" ] || fail "vectors alone are better: $(cat "$work/ranks")"
# Words alone: 20 first and 34 among three before headings counted more and function words nothing. Edits of docs/ move both.
[ "$(first text)" -ge 22 ] || fail "words rank the right page first for $(first text) questions"
[ "$(among text)" -ge 43 ] || fail "words rank the right page among three for $(among text) questions"
stop_shoal
echo "right page first: hybrid $(first hybrid), vector $(first vector), text $(first text)"
