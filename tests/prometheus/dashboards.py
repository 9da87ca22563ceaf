"""Dashboards of Grafana and rules of Prometheus, looked at by tests/e2e/dashboards.sh and prometheus.sh.

    dashboards.py names                 every metric in them is in docs/metrics.md, with the labels that they select and group by
    dashboards.py structure             what Grafana needs of a dashboard: panels that do not overlap, ids, targets, variables
    dashboards.py queries JOB           each dashboard query on a line, its variables replaced
"""
import collections
import json
import pathlib
import re
import sys

BOARDS = sorted(pathlib.Path("deploy/grafana").glob("*.json"))
RULES = pathlib.Path("deploy/prometheus/rules.yaml")
OF_SCRAPES = {"job", "instance", "le"}


def panels(board):
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def queries(path):
    board = json.loads(path.read_text())
    for panel in panels(board):
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def rule_queries():
    """As rules.yaml is written: the name, then the expression as a block."""
    found = re.findall(r"^ +- (?:record|alert): (\S+)\n +expr: \|-\n((?: {10}.*\n)+)", RULES.read_text(), re.M)
    assert len(found) == len(re.findall(r"^ +expr:", RULES.read_text(), re.M)) > 30
    yield from found


def documented():
    """Each metric's type and labels."""
    known = {}
    for name, kind, labels in re.findall(r"^\| `(shoal_\w+)` \| (\w+) \| ([^|]*)\|", pathlib.Path("docs/metrics.md").read_text(), re.M):
        known[name] = kind, set(re.findall(r"`(\w+)`", labels))
    assert len(known) > 60, known
    return known


def check_query(where, text, known):
    text = re.sub(r"shoal:[\w:]+", "up", text) # recorded by a rule, which is looked at itself
    for name, selector in re.findall(r"\b(shoal_\w+)(\{[^}]*\})?", text):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        kind, labels = known.get(name) or known.get(base) or (None, None)
        assert kind, f"{where}: {name} is not in docs/metrics.md"
        assert (kind == "histogram") == (name not in known), f"{where}: {name} is read as another type than {kind}"
        asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", selector))
        assert asked <= labels | OF_SCRAPES, f"{where}: {name} has no label {asked - labels - OF_SCRAPES}"
    grouped = {l.strip() for g in re.findall(r"\b(?:by|on|group_left) \(([^)]*)\)", text) for l in g.split(",")} - {""}
    of_all = set().union(*(known[n if n in known else re.sub(r"_(bucket|sum|count)$", "", n)][1] for n in re.findall(r"\bshoal_\w+", text))) | OF_SCRAPES
    assert grouped <= of_all, f"{where}: nothing has a label {grouped - of_all}"


def names():
    known, n = documented(), 0
    for path in BOARDS:
        for title, text in queries(path):
            check_query(f"{path.name}, {title}", text, known)
            n += 1
    for name, text in rule_queries():
        check_query(f"rules.yaml, {name}", text, known)
        n += 1
    print(f"{n} queries name metrics and labels that exist")


def structure():
    uids = collections.Counter()
    for path in BOARDS:
        board = json.loads(path.read_text())
        uids[board["uid"]] += 1
        variables = {v["name"] for v in board["templating"]["list"]} | {"__rate_interval"}
        ids, taken = collections.Counter(), {}
        for panel in panels(board):
            where = f"{path.name}, {panel['title']}"
            ids[panel["id"]] += 1
            at = panel["gridPos"]
            assert 0 <= at["x"] and at["x"] + at["w"] <= 24 and at["h"] > 0, f"{where}: {at}"
            for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
                assert cell not in taken, f"{where}: lies over {taken[cell]}"
                taken[cell] = panel["title"]
            if panel["type"] == "row":
                continue
            assert panel["targets"] and panel["fieldConfig"]["defaults"]["unit"], where
            assert len({t["refId"] for t in panel["targets"]}) == len(panel["targets"]), where
            for t in panel["targets"]:
                assert t["datasource"]["uid"] == "${datasource}", where
                used = set(re.findall(r"\$\{?(\w+)", t["expr"]))
                assert used <= variables and ("job" in used), f"{where}: {used}"
                legend = set(re.findall(r"\{\{(\w+)\}\}", t["legendFormat"]))
                kept = {l.strip() for g in re.findall(r"by \(([^)]*)\)", t["expr"]) for l in g.split(",")} | {"instance"}
                assert legend <= kept, f"{where}: the legend names {legend - kept}, which the query drops"
        assert max(ids.values()) == 1, f"{path.name}: ids {ids.most_common(1)}"
    assert len(BOARDS) == 2 and max(uids.values()) == 1, uids
    print(f"{len(BOARDS)} dashboards are whole")


def replaced(text, job):
    return text.replace("$__rate_interval", "15s").replace("$job", job).replace("$model", ".*")


if __name__ == "__main__":
    if sys.argv[1] == "queries":
        for path in BOARDS:
            for title, text in queries(path):
                print(f"{path.stem}\t{title}\t{replaced(text, sys.argv[2])}")
    else:
        {"names": names, "structure": structure}[sys.argv[1]]()
