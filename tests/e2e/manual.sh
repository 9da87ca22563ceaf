#!/usr/bin/env bash
# The table of commands, shoal help, the manual page and README name the same commands, verbs and options.
source "$(dirname "$0")/lib.sh"
"$SHOAL_BIN" completions table >"$work/table.json" || fail "no table"
"$SHOAL_BIN" help all >"$work/help"
cat >"$work/compare.py" <<'END'
import json, re, sys
table, help_text, page, readme = json.load(open(sys.argv[1])), open(sys.argv[2]).read(), open("docs/shoal.1").read(), open("README.md").read()
commands = {c["name"]: c for c in table["commands"]}
shown = {n: c for n, c in commands.items() if not c["hidden"]}
wrong = []

listed = re.findall(r"^  ([a-z0-9-]+) ", help_text, re.M)
if sorted(listed) != sorted(shown):
    wrong.append(f"shoal help all lists {set(listed) ^ set(shown)} otherwise than the table")

# ---- shoal.1: a paragraph a command, some of them several; each names only options that are there
def plain(s):
    return re.sub(r"\\f.", "", s.replace("\\-", "-").replace("\\&", "").replace('"', ""))
section = page[page.index(".SH COMMANDS"):page.index(".SH ENVIRONMENT")]
told = {}
for head, body in re.findall(r"^\.TP\n\.(?:BI|B|BR) (.*)\n((?:(?!\.TP\n|\.PP\n).*\n)*)", section, re.M):
    head = plain(head)
    name = head.split()[0]
    if name not in shown:
        wrong.append(f"shoal.1 has a command {name}, the table has none")
        continue
    told.setdefault(name, []).append(head + "\n" + plain(body))
for name in sorted(set(shown) - set(told)):
    wrong.append(f"shoal.1 says nothing of shoal {name}")
every = {o["name"] for c in commands.values() for o in c["options"]} | {"help", "version"}
for name, paragraphs in told.items():
    own = {o["name"] for o in shown[name]["options"]} | {"help"}
    letters = {o["letter"] for o in shown[name]["options"]} | {"h", ""}
    for text in paragraphs:
        head = text.split("\n")[0]
        for o in re.findall(r"(?<![\w-])--([a-z][\w-]*)", head):
            if o not in own:
                wrong.append(f"shoal.1: shoal {name} has no --{o}")
        for letter in re.findall(r"(?<![\w-])-([a-zA-Z0-9])(?![\w-])", head):
            if letter not in letters:
                wrong.append(f"shoal.1: shoal {name} has no -{letter}")
        for o in re.findall(r"(?<![\w-])--([a-z][\w-]*)", text):
            if o not in every:
                wrong.append(f"shoal.1, of shoal {name}: nothing has an option --{o}")
    for v in shown[name]["verbs"]:
        if not any(re.search(rf"\b{re.escape(v['name'])}\b", t) for t in paragraphs):
            wrong.append(f"shoal.1 says nothing of shoal {name} {v['name']}")

# ---- README and the other pages: what follows `shoal` in their examples is there
import glob
for path in ["README.md", "ARCHITECTURE.md"] + sorted(glob.glob("docs/*.md")):
    for block in re.findall(r"^```(?:sh|bash|console|)\n(.*?)^```", open(path).read(), re.M | re.S):
        for name, rest in re.findall(r"(?:^|[|;&(]\s*|\$ )(?:build/|\./|[\w./]*/)?shoal ([a-z][\w-]*)([^|;&#\n]*)", block, re.M):
            if name not in commands and name != "help":
                wrong.append(f"{path}: there is no shoal {name}")
            for o in re.findall(r"(?<![\w-])--([a-z][\w-]*)", rest) if name in commands else []:
                if o not in {o["name"] for o in commands[name]["options"]} | {"help"}:
                    wrong.append(f"{path}: shoal {name} has no --{o}")
print("\n".join(wrong) or f"{len(shown)} commands, {sum(len(c['options']) for c in shown.values())} options")
sys.exit(1 if wrong else 0)
END
said=$(python3 "$work/compare.py" "$work/table.json" "$work/help") || fail "they differ:
$said"

# ---- the page as it is installed: troff has nothing to complain of
if command -v man >/dev/null; then
    "$SHOAL_BIN" completions manual >"$work/options"
    sed -e "/^\.SH ENVIRONMENT/{
r $work/options
N
}" docs/shoal.1 >"$work/shoal.1"
    complaints=$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$work/shoal.1" 2>&1 >/dev/null | head -5)
    [ -z "$complaints" ] || fail "troff: $complaints"
fi

# ---- a page for each command, with its verbs and options; shoal.1 names them all
cat >"$work/pages.py" <<'END'
import json, re, subprocess, sys
program, work = sys.argv[1:]
shown = [c for c in json.load(open(f"{work}/table.json"))["commands"] if not c["hidden"]]
named = re.findall(r"^\.BR shoal\\-(\S+) \(1\)", open("docs/shoal.1").read().split(".SH SEE ALSO")[1], re.M)
assert [n.replace("\\-", "-") for n in named] == [c["name"] for c in shown], "SEE ALSO of shoal.1 is not the list of commands"
for c in shown:
    page = subprocess.run([program, "completions", "manual", c["name"]], capture_output=True, text=True, check=True).stdout
    plain = page.replace("\\-", "-").replace("\\(dq", '"').replace("\\e", "\\")
    assert f"shoal-{c['name']} - {c['summary']}\n" in plain, c["name"]
    for o in c["options"]:
        assert f"--{o['name']}" in plain and o["help"] in plain, (c["name"], o["name"])
    for v in c["verbs"]:
        assert v["name"] in plain and (not v["name"] or v["summary"] in plain), (c["name"], v["name"])
    open(f"{work}/shoal-{c['name']}.1", "w").write(page)
END
python3 "$work/pages.py" "$SHOAL_BIN" "$work" || fail "the commands' pages"
"$SHOAL_BIN" completions manual nothing >"$work/said" 2>&1 && fail "there is a page of no command"
if command -v man >/dev/null; then
    complaints=$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$work"/shoal-*.1 2>&1 >/dev/null | head -5)
    [ -z "$complaints" ] || fail "troff, a command's page: $complaints"
fi
echo "$said"
