"""rank.py URL COLLECTION: how often each mode of search ranks the right page first for questions.tsv, and among
the first three pages. The collection holds docs/*.md. Prints one line per mode, "hybrid 41 51 52"."""
import json
import os
import sys
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
URL, COLLECTION = sys.argv[1:3]


def search(question, mode):
    body = json.dumps({"query": question, "mode": mode, "limit": 50}).encode()
    request = urllib.request.Request("%s/v1/collections/%s/search" % (URL, COLLECTION), body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.load(reply)["results"]


with open(os.path.join(HERE, "questions.tsv"), encoding="utf-8") as f:
    questions = [line.rstrip("\n").split("\t") for line in f]
for mode in ("hybrid", "vector", "text"):
    first = three = 0
    for page, question in questions:
        pages = []
        for hit in search(question, mode):
            name = os.path.basename(hit["source"])
            if name not in pages:
                pages.append(name)
        first += pages[:1] == [page]
        three += page in pages[:3]
    print(mode, first, three, len(questions), flush=True)
