#!/usr/bin/env bash
# make html: every link and anchor between its pages leads somewhere, nothing is loaded from elsewhere, and the search finds.
# long: renders every document, and searches in Chromium
source "$(dirname "$0")/lib.sh"
scripts/html.sh "$work/html" >"$work/said" 2>&1 || { tail -1 "$work/said"; grep -q 'no markdown_it' "$work/said" && exit 77; fail "make html"; }
cat >"$work/check.py" <<'END_PY'
import os, re, sys
from html.parser import HTMLParser
from urllib.parse import unquote

class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)
    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if "id" in a:
            assert a["id"] not in self.ids, a["id"]
            self.ids.add(a["id"])
        if tag == "a":
            self.links.append(a["href"])
        elif tag in ("img", "script", "link"):
            self.loads.append(a.get("src") or a.get("href"))

top, wrong, pages, n_links = sys.argv[1], [], {}, 0
for folder, _, files in os.walk(top):
    for name in files:
        if name.endswith(".html"):
            path = os.path.join(folder, name)
            pages[os.path.normpath(path)] = Page(open(path).read())
reached, todo = set(), [os.path.normpath(os.path.join(top, "index.html"))]
while todo:
    path = todo.pop()
    if path in reached:
        continue
    reached.add(path)
    for link in pages[path].links + pages[path].loads:
        if re.match(r"[a-z]+:", link):
            if link in pages[path].loads:
                wrong.append(f"{path} loads {link}")
            continue
        n_links += 1
        name, _, anchor = unquote(link).partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.isfile(target):
            wrong.append(f"{path}: there is no {link}")
        elif anchor and anchor not in pages[target].ids:
            wrong.append(f"{path}: {link} names no heading")
        elif target in pages:
            todo.append(target)
wrong += [f"no link leads to {p}" for p in sorted(set(pages) - reached)]
for needed in ("docs/http.html", "docs/decisions/index.html", "CHANGELOG.html", "ARCHITECTURE.html", "CONTRIBUTING.html", "docs/page.png"):
    if not os.path.isfile(os.path.join(top, needed)):
        wrong.append(f"there is no {needed}")
print("\n".join(wrong) or f"{len(pages)} pages, {n_links} links")
sys.exit(1 if wrong else 0)
END_PY
said=$(python3 "$work/check.py" "$work/html") || fail "the pages:
$said"
cp "$work/html/docs/http.html" "$work/kept"
sed -i 's|href="grpc.html"|href="gone.html"|' "$work/html/docs/http.html"
! python3 "$work/check.py" "$work/html" >/dev/null || fail "a broken link passes"
cp "$work/kept" "$work/html/docs/http.html"

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "$said; no Chromium to search in"; exit 77; }
found() { # QUERY: the links of what is found, as they stand in docs/index.html
    HOME=$work timeout 60 "$chromium" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/profile" --virtual-time-budget=4000 \
        --dump-dom "file://$work/html/docs/index.html?q=$1" 2>/dev/null |
        sed -n '/<section id="results"/,/<\/section>/p' | grep -oE '<h1>[^<]*|<li><a href="[^"]*"' | head -6
}
results=$(found speculative%20drafts)
[[ $results == *'href="../'* ]] || fail "nothing is found: $results"
results=$(found shoal_batches_total)
[[ $results == *'docs/metrics.html'* ]] || fail "a metric is not found: $results"
results=$(found otel%20collector)
[[ $results == *'docs/observability.html'* ]] || fail "observability.md is not among the first: $results"
results=$(found xyzzyplugh)
[[ $results == *'nothing found'* && $results != *href* ]] || fail "what is nowhere is found: $results"
echo "$said; searched"
