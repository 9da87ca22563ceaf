"""The documentation as static pages: README.md, docs/README.md, and every file of the repository that they link to, directly or not.

    python3 scripts/html/pages.py OUT      (make html)

Each Markdown file becomes a page at its own place below OUT (README.md is index.html of its folder), each other text file a
page that shows it, each image a copy. The navigation is docs/README.md: its headings, and the pages that its tables name.
OUT/search-index.js is the index: sections, and for each word the sections that have it. Nothing there needs a server."""
import html, json, os, posixpath, re, shutil, subprocess, sys
from markdown_it import MarkdownIt

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ENTRIES = ["README.md", "docs/README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
IMAGES = (".png", ".svg", ".jpg")


def slug(heading, used):  # as GitHub and GitLab make it; tests/e2e/links.sh checks the links against the same rule
    base = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
    n = used.get(base, 0)
    used[base] = n + 1
    return f"{base}-{n}" if n else base


def tracked():  # by git; of an unpacked archive, all files
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    files = out.stdout.split("\0") if out.returncode == 0 else []
    if "README.md" not in files:
        files = [os.path.relpath(os.path.join(d, f), ROOT) for d, _, fs in os.walk(ROOT) for f in fs]
    return sorted(f for f in files if f and not f.startswith("build/"))


def plain(inline):
    return "".join(plain(t) if t.children else t.content if t.type in ("text", "code_inline") else " " if "break" in t.type else ""
                   for t in inline.children or [])


class Page:
    def __init__(self, path):
        self.path, self.title, self.headings, self.sections = path, path, [], []
        folder, name = posixpath.split(path)
        self.url = posixpath.join(folder, "index.html" if name == "README.md" else
                                  (name[:-3] if name.endswith(".md") else name or "folder") + ".html")


class Site:
    def __init__(self, out):
        self.out, self.files, self.pages, self.images, self.todo = out, tracked(), {}, set(), []
        self.known = set(self.files)
        self.folders = {d for f in self.files for d in parents(f)}
        self.md = MarkdownIt("commonmark").enable("table").enable("strikethrough")
        self.version = re.search(r"project\(shoal VERSION ([\d.]+)", self.read("CMakeLists.txt")).group(1)

    def read(self, path):
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            return f.read()

    def page(self, path):
        if path not in self.pages:
            self.pages[path] = Page(path)
            self.todo.append(self.pages[path])
        return self.pages[path]

    # What a link of `page` becomes. A folder is its README, or a page that lists it.
    def link(self, page, href):
        if re.match(r"[a-z][a-z+.-]*:|//|#", href) or not href:
            return href
        name, _, anchor = href.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), name))
        if target in self.folders:
            target += "/README.md" if target + "/README.md" in self.known else "/"
        elif target not in self.known:
            raise SystemExit(f"html: {page.path}: there is no {href}")
        if target.endswith(IMAGES):
            self.images.add(target)
            to = target
        else:
            to = self.page(target).url
        return posixpath.relpath(to, posixpath.dirname(page.url) or ".") + ("#" + anchor if anchor else "")

    def markdown(self, page):
        tokens, used = self.md.parse(self.read(page.path)), {}
        section = None
        for i, t in enumerate(tokens):
            if t.type == "heading_open":
                text = plain(tokens[i + 1])
                t.attrSet("id", slug(text, used))
                page.headings.append((int(t.tag[1]), text, t.attrGet("id")))
                section = [t.attrGet("id"), text, []]
                page.sections.append(section)
            elif t.type == "inline":
                if section and tokens[i - 1].type != "heading_open":
                    section[2].append(plain(t))
                for child in t.children:
                    if child.type == "link_open":
                        child.attrSet("href", self.link(page, child.attrGet("href")))
                    elif child.type == "image":
                        child.attrSet("src", self.link(page, child.attrGet("src")))
            elif t.type in ("fence", "code_block") and section:
                section[2].append(t.content)
        page.title = page.headings[0][1] if page.headings else page.path
        body = self.md.renderer.render(tokens, self.md.options, {})
        body = re.sub(r"(<h([1-6]) id=\"([^\"]+)\">)(.*?)</h\2>", r'\1\4 <a class="anchor" href="#\3" aria-label="link">#</a></h\2>', body)
        return body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")

    def shown(self, page):  # a folder, a manual page, a file's text
        page.title = page.path
        if page.path.endswith("/"):
            names = sorted({f[len(page.path):].split("/")[0] for f in self.files if f.startswith(page.path)})
            text = "\n".join(names)
        else:
            text = self.read(page.path)
            if page.path.endswith(".1") and shutil.which("man"):
                env = dict(os.environ, MANWIDTH="96", LC_ALL="C.UTF-8", MAN_KEEP_FORMATTING="")
                said = subprocess.run(["man", "-l", "-Tutf8", os.path.join(ROOT, page.path)], capture_output=True, text=True, env=env)
                text = re.sub(r".\x08|\x1b\[[\d;]*m", "", said.stdout) or text
        page.sections = [["", page.path, [text]]]
        return f"<h1>{html.escape(page.path)}</h1>\n<pre><code>{html.escape(text)}</code></pre>"

    def navigation(self):
        index, nav, group = self.page("docs/README.md"), [], None
        tokens = self.md.parse(self.read(index.path))
        for i, t in enumerate(tokens):
            if t.type == "heading_open" and t.tag == "h2":
                group = (plain(tokens[i + 1]), [])
                nav.append(group)
            elif group and t.type == "inline":
                for c in t.children:
                    if c.type == "link_open" and not re.match(r"[a-z]+:", c.attrGet("href")):
                        path = posixpath.normpath(posixpath.join("docs", c.attrGet("href").split("#")[0]))
                        path += "/README.md" if path in self.folders else ""
                        if path in self.pages and self.pages[path] not in group[1]:
                            group[1].append(self.pages[path])
        return [("Shoal", [self.page("README.md"), index])] + nav

    def build(self):
        for path in ENTRIES:
            self.page(path)
        bodies = {}
        while self.todo:
            page = self.todo.pop(0)
            bodies[page] = self.markdown(page) if page.path.endswith(".md") else self.shown(page)
        nav = self.navigation()
        if os.path.isdir(self.out):
            shutil.rmtree(self.out)
        for page, body in bodies.items():
            self.write(page.url, self.whole(page, body, nav))
        for path in self.images:
            os.makedirs(os.path.dirname(os.path.join(self.out, path)), exist_ok=True)
            shutil.copyfile(os.path.join(ROOT, path), os.path.join(self.out, path))
        for name in ("site.css", "site.js"):
            shutil.copyfile(os.path.join(HERE, name), os.path.join(self.out, name))
        self.index(bodies)
        print(f"html: {len(bodies)} pages in {self.out}/index.html")

    def whole(self, page, body, nav):
        here = posixpath.dirname(page.url) or "."
        root = posixpath.relpath(".", here) + "/"
        rows = []
        for name, pages in nav:
            rows.append(f"<h2>{html.escape(name)}</h2>\n<ul>")
            for p in pages:
                title = "Documentation" if p.path == "docs/README.md" else p.title.removeprefix("docs/")
                now = ' aria-current="page"' if p is page else ""
                inner = "".join(f'<li><a href="#{i}">{html.escape(t)}</a></li>' for n, t, i in p.headings if n == 2) if p is page else ""
                rows.append(f'<li><a href="{posixpath.relpath(p.url, here)}"{now}>{html.escape(title)}</a>'
                            + (f"<ul>{inner}</ul>" if inner else "") + "</li>")
            rows.append("</ul>")
        title = page.title if page.path == "README.md" else f"{page.title} - Shoal"
        return f"""<!doctype html>
<html lang="en" data-root="{root}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<link rel="stylesheet" href="{root}site.css">
<script src="{root}site.js" defer></script>
</head>
<body>
<header>
<label for="menu" aria-label="pages">&#9776;</label>
<a class="home" href="{root}index.html">Shoal <small>{self.version}</small></a>
<input id="search" type="search" placeholder="Search (/)" aria-label="search" autocomplete="off">
</header>
<input id="menu" type="checkbox" aria-label="show the list of pages">
<nav>
{chr(10).join(rows)}
</nav>
<main>
<section id="results" hidden></section>
<article>
{body}
<footer>{html.escape(page.path)}</footer>
</article>
</main>
</body>
</html>
"""

    # [page, anchor, heading, text] of each section; word: [section, weight, ...]; a word of a heading weighs more.
    def index(self, pages):
        sections, words = [], {}
        for n, page in enumerate(pages):
            for anchor, heading, texts in page.sections:
                text = " ".join(" ".join(texts).split())
                weights = {}
                for weight, words_of in ((1, text), (8, heading), (8 if heading == page.title else 2, page.title)):
                    for w in re.findall(r"[\w-]+", words_of.lower()):
                        for part in {w, *re.split(r"[_-]+", w)}:
                            if 1 < len(part) < 40:
                                weights[part] = min(weights.get(part, 0) + weight, 30)
                for w, weight in weights.items():
                    words.setdefault(w, []).extend((len(sections), weight))
                sections.append([n, anchor, heading, text[:20000]])
        data = {"pages": [[p.url, p.title] for p in pages], "sections": sections, "words": dict(sorted(words.items()))}
        self.write("search-index.js", "searchIndex = " + json.dumps(data, ensure_ascii=False, separators=(",", ":")) + ";\n")

    def write(self, path, text):
        path = os.path.join(self.out, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def parents(path):
    while path := posixpath.dirname(path):
        yield path


if __name__ == "__main__":
    Site(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/html")).build()
