#!/usr/bin/env bash
# The tables of docs/configuration.md are what `shoal config docs` prints, and together they have every key. Each table
# stands below the command that prints it:
#
#     <!-- shoal config docs limits -->
#     | key | type | default | meaning |
#     ...
#     <!-- end -->
#
# SHOAL_WRITE_DOCS=1 writes the tables anew.
source "$(dirname "$0")/lib.sh"
cat >"$work/tables.py" <<'END'
import os, re, shlex, subprocess, sys
shoal, page, write = sys.argv[1], "docs/configuration.md", os.environ.get("SHOAL_WRITE_DOCS") == "1"

def docs(keys):
    return subprocess.run([shoal, "config", "docs"] + keys, check=True, capture_output=True, text=True).stdout

def keys_of(tables):
    return set(re.findall(r"^\| `([^`]+)` \|", tables, re.M))

before = open(page).read()
after = re.sub(r"(<!-- shoal config docs (.*?) -->\n)(.*?)(<!-- end -->)",
               lambda m: m[1] + docs(shlex.split(m[2])) + m[4], before, flags=re.S)
if write:
    open(page, "w").write(after)
elif before != after:
    a, b = before.split("\n"), after.split("\n")
    at = next(i for i, (x, y) in enumerate(zip(a + [""], b + [""])) if x != y)
    sys.exit(f"line {at + 1} of {page} is\n{a[at]}\nand should be\n{b[at]}")
missing = keys_of(docs([])) - keys_of(after)
if missing:
    sys.exit(f"{page} lacks {', '.join(sorted(missing))}")
print(f"{len(keys_of(docs([])))} keys")
END
said=$(python3 "$work/tables.py" "$SHOAL_BIN" 2>&1) || fail "docs/configuration.md is not what the schema says: SHOAL_WRITE_DOCS=1 bash $0
$said"
"$SHOAL_BIN" config docs limts >"$work/out" 2>"$work/err"
[ $? -eq 1 ] && grep -q "no key 'limts'" "$work/err" && [ ! -s "$work/out" ] || fail "an unknown key: $(cat "$work/err")"
"$SHOAL_BIN" config docs tls.cert | diff - <(printf '%s\n' '| key | type | default | meaning |' '|---|---|---|---|' \
    '| `tls.cert` | path | required | PEM file with the certificate chain; both files are read again when they change |') >"$work/diff" || fail "one key: $(cat "$work/diff")"
echo "$said"
