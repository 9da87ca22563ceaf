#!/usr/bin/env bash
# Every relative link of every Markdown file leads to a file, and to a heading of it where it names one. The places and
# tests that ARCHITECTURE.md, CONTRIBUTING.md, docs/internals and the READMEs of src name are there.
source "$(dirname "$0")/lib.sh"
cat >"$work/links.py" <<'END'
import glob, os, re, sys

def slug(heading): # as GitHub and GitLab make it
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")

def text_of(path):
    return re.sub(r"^```.*?^```", "", open(path).read(), flags=re.M | re.S)

def anchors(path, known={}):
    if path not in known:
        slugs = [slug(h) for h in re.findall(r"^#+ (.*)$", text_of(path), re.M)]
        known[path] = {s if s not in slugs[:i] else f"{s}-{slugs[:i].count(s)}" for i, s in enumerate(slugs)}
    return known[path]

# `src/AREA/MODULE/FILE` (* stands for a part of a name), and behind one in a cell `FILE` of the same folder; "run.sh PRESET FILTER"
def places(path, tests):
    lines = text_of(path).split("\n")
    for cell in [c for line in lines for c in (line.split("|") if line.startswith("|") else [line])]:
        folder = None
        for word in re.findall(r"`([^`\n]+)`", cell):
            if re.match(r"(src|tests|scripts|docs|proto|assets|bench|lexicons)/[\w./*-]+$", word) and not re.search(r"[A-Z]{4}", word):
                folder = os.path.dirname(word) if not word.endswith("/") else word.rstrip("/")
                if not glob.glob(word):
                    yield f"{path}: there is no {word}"
            elif folder and cell not in lines and re.match(r"\w+(\*?)\.[ch]$", word) and folder.startswith("src/"):
                if not glob.glob(os.path.join(folder, word)):
                    yield f"{path}: there is no {folder}/{word}"
            for name in re.findall(r"^tests/run\.sh release (\w+)$", word):
                if not re.search("[A-Z]{4}", name) and not any(name in t for t in tests):
                    yield f"{path}: no test has {name} in its name"

def tests_of(): # as tests/run.sh names them
    for path in glob.glob("tests/*/*/test_*.c"):
        yield path.split("/")[2] + "_" + os.path.basename(path)[:-2]
    for path in glob.glob("tests/fuzz/fuzz_*.c") + glob.glob("tests/e2e/*.sh"):
        yield os.path.basename(path).rsplit(".", 1)[0]

wrong, n_links, skipped = [], 0, {"build", "node_modules", ".git", ".cache"}
for folder, folders, files in os.walk(sys.argv[1]):
    folders[:] = [f for f in folders if f not in skipped and os.path.join(folder, f) != "./tests/data"]
    for path in (os.path.join(folder, f) for f in files if f.endswith(".md")):
        for link in re.findall(r"\]\(([^)\s]+)\)", text_of(path)):
            if re.match(r"[a-z]+:", link):
                continue
            n_links += 1
            name, _, anchor = link.partition("#")
            target = os.path.join(folder, name) if name else path
            if not os.path.exists(target):
                wrong.append(f"{path}: there is no {link}")
            elif anchor and target.endswith(".md") and anchor not in anchors(target):
                wrong.append(f"{path}: {link} names no heading")
if sys.argv[1] == ".":
    for path in glob.glob("docs/*.md"): # each says first for whom it is
        if os.path.basename(path) != "README.md" and not open(path).read().split("\n", 3)[2].startswith("For "):
            wrong.append(f"{path}: the third line does not say for whom the page is")
    tests = list(tests_of())
    for path in ["ARCHITECTURE.md", "CONTRIBUTING.md", *glob.glob("docs/internals/*.md"), *glob.glob("src/**/README.md", recursive=True)]:
        wrong += places(path, tests)
print("\n".join(wrong) or f"{n_links} links")
sys.exit(1 if wrong else 0)
END
# ---- it tells a broken link from a right one
mkdir "$work/pages"
printf '# A page\n\n[right](b.md#two-words), [gone](c.md), [no heading](b.md#three), [here](#a-page), [far](https://x.example)\n' \
    >"$work/pages/a.md"
printf '## Two words\n' >"$work/pages/b.md"
said=$(python3 "$work/links.py" "$work/pages") && fail "broken links pass"
[ "$(wc -l <<<"$said")" -eq 2 ] && [[ $said == *"no c.md"*"b.md#three"* ]] || fail "of two broken links: $said"

said=$(python3 "$work/links.py" .) || fail "broken links:
$said"
echo "$said"
