#!/usr/bin/env bash
# What bash, zsh and fish offer behind shoal, in these shells themselves; zsh and fish where they are installed.
source "$(dirname "$0")/lib.sh"
mkdir "$work/bin"
ln -s "$SHOAL_BIN" "$work/bin/shoal"
PATH=$work/bin:$PATH
export PATH

# offers LINE: what a bash without anything else offers behind it, a word a line
cat >"$work/ask.bash" <<'END'
. <(shoal completions bash)
complete -p shoal >/dev/null || exit 1
IFS=' ' read -r -a COMP_WORDS <<<"$1"
[[ $1 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { [ -z "${OLD_BASH:-}" ]; }
_shoal
printf '%s\n' "${COMPREPLY[@]}"
END
offers() { bash --norc "$work/ask.bash" "$1" || fail "bash: $1"; }
# offered LINE WORD...: these and no others, in any order
offered() {
    local line=$1 got want
    shift
    got=$(offers "$line" | sort | xargs)
    want=$(printf '%s\n' "$@" | sort | xargs)
    [ "$got" = "$want" ] || fail "behind \"$line\": $got, not $want"
}
has() { offers "$1" | grep -qxF -e "$2" || fail "behind \"$1\" there is no $2: $(offers "$1" | xargs)"; }
lacks() { ! offers "$1" | grep -qxF -e "$2" || fail "behind \"$1\" there is $2"; }

offered 'shoal quan' quantize
has 'shoal ' help
lacks 'shoal ' worker
offered 'shoal help pipe' pipeline
offered 'shoal help pipeline ' check graph test
offered 'shoal pipeline ' check graph test
offered 'shoal docs search --re' --rerank
offered 'shoal docs list --re'
has 'shoal serve --' --check
touch "$work/some.yaml" && mkdir "$work/some.d"
offered "shoal serve -c $work/some.y" "$work/some.yaml"
offered "shoal serve --config $work/some.y" "$work/some.yaml"
offered "shoal lab run x --out $work/some." "$work/some.d"
has 'shoal classify home-in' home-intent
lacks 'shoal classify home-intent ' home-intent
has 'shoal classify -t 2 home-in' home-intent
has "shoal quantize $work/some.y" "$work/some.yaml"
has "shoal calibrate x y $work/some.y" "$work/some.yaml"
offered 'shoal docs ask --limit ' # a number
bash -n <(shoal completions bash) || fail "bash does not read it"

# ---- names come from a running server, and from the manifest without one
printf 'models:\n  - name: only-here\n    path: %s/models/home-intent.gguf\n' "$PWD" >"$work/one.yaml"
start_shoal "$work/one.yaml"
shoal completions models --server "$url" | sort >"$work/names"
grep -qx only-here "$work/names" || fail "the server's models: $(xargs <"$work/names")"
[ "$(sort -u "$work/names" | wc -l)" -eq "$(wc -l <"$work/names")" ] || fail "a name twice"
shoal completions models --server "$url" --json | python3 -c 'import json, sys; assert "only-here" in json.load(sys.stdin)' || fail "JSON"
stop_shoal
shoal completions models --server "$url" | grep -qx home-chat-s || fail "the manifest's models"

# ---- names are anybody's: a file's and a server's run nothing, and those with line ends are none
mkdir "$work/evil"
python3 - "$work/evil" <<'END'
import json, os, sys
folder = sys.argv[1]
entry = {"file": "x.gguf", "sha256": "0" * 64, "bytes": 1, "task": "classify"}
with open(f"{folder}/models.json", "w") as f:
    json.dump({"models": [{**entry, "name": n} for n in ("zz$(touch listed)", "zz`touch listed`", "zz*")]}, f)
with open(f"{folder}/serve.py", "w") as f:
    f.write("""
import http.server, json
class Says(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        ids = ["yy$(touch served)", "yy plain", "yy\\n$(touch served)", "yy\\x1b]0;x", "yy\\u009b2J"]
        body = json.dumps({"data": [{"id": i} for i in ids]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 0), Says)
open("config.yaml", "w").write(f"listen: 127.0.0.1:{s.server_port}\\nmodels: []\\n")
open("at", "w").write(f"http://127.0.0.1:{s.server_port}")
s.serve_forever()
""")
END
(cd "$work/evil" && exec python3 serve.py) &
server=$!
for _ in $(seq 200); do [ -s "$work/evil/at" ] && break; sleep 0.05; done
shoal completions models --server "$(cat "$work/evil/at")" | grep '^yy' >"$work/names"
[ "$(cat "$work/names")" = "$(printf '%s\n' 'yy$(touch served)' 'yy plain')" ] || fail "the names of a server: $(cat -v "$work/names")"
printf '#!/bin/sh\n[ "$*" = "completions models" ] && set -- "$@" --server "%s"\nexec "%s" "$@"\n' "$(cat "$work/evil/at")" "$SHOAL_BIN" >"$work/evil/shoal"
chmod +x "$work/evil/shoal"
in_evil() { (cd "$work/evil" && PATH=$work/evil:$PATH SHOAL_MODELS=$work/evil bash --norc "$work/ask.bash" "$1") || fail "bash: $1"; }
[ "$(in_evil 'shoal classify yy' | sort)" = "$(printf '%s\n' 'yy plain' 'yy$(touch served)' | sort)" ] || fail "behind yy: $(in_evil 'shoal classify yy')"
[ "$(in_evil 'shoal classify zz' | wc -l)" -eq 3 ] || fail "behind zz: $(in_evil 'shoal classify zz')"
in_evil 'shoal classify ' | grep -qxF 'zz*' || fail "a name lost its star"
OLD_BASH=1 in_evil 'shoal classify yy' | grep -qxF 'yy\$\(touch\ served\)' || fail "a bash that cannot quote inserts a command"
if command -v fish >/dev/null; then
    (cd "$work/evil" && HOME=$work PATH=$work/evil:$PATH fish -N -c "shoal completions fish | source; complete -C 'shoal classify yy'") | grep -qxF 'yy$(touch served)' || fail "fish behind yy"
fi
if command -v zsh >/dev/null; then
    mkdir "$work/evil/fpath" && shoal completions zsh >"$work/evil/fpath/_shoal"
    cat >"$work/evil/tab.zsh" <<'END'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1='ready> '; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; setopt no_list_beep; bindkey '^I' complete-word; print 'set'' up'"
zpty -r z all '*set up*ready> ' || exit 1
zpty -w -n z $'shoal classify yy\\$\t'
zpty -r -m z all '*touch*served*[)]*' && print -r -- "$all"
END
    (cd "$work/evil" && PATH=$work/evil:$PATH timeout 30 zsh -f tab.zsh "$work/evil/fpath" >"$work/tabbed" 2>&1) || fail "zsh behind yy: $(cat -v "$work/tabbed")"
    grep -qF '\$\(touch\ served\)' "$work/tabbed" || fail "zsh inserts a command: $(cat -v "$work/tabbed")"
fi
[ ! -e "$work/evil/listed" ] && [ ! -e "$work/evil/served" ] || fail "the tab key ran a model's name"
stop_shoal

# ---- every option of the table stands in every script, and in the manual
shoal completions table >"$work/table.json"
for shell in bash zsh fish manual; do shoal completions $shell >"$work/$shell"; done
python3 - "$work" <<'END' || fail "the scripts"
import json, sys
work = sys.argv[1]
commands = json.load(open(f"{work}/table.json"))["commands"]
texts = {s: open(f"{work}/{s}").read() for s in ("bash", "zsh", "fish", "manual")}
n = 0
for c in (c for c in commands if not c["hidden"]):
    for shell, text in texts.items():
        for o in c["options"]:
            want = {"bash": f"--{o['name']} ", "zsh": f"--{o['name']}", "fish": f"-l {o['name']} ",
                    "manual": "\\-\\-" + o["name"].replace("-", "\\-")}[shell]
            assert want in text, (shell, c["name"], o["name"])
            n += 1
        for v in c["verbs"]:
            assert shell == "manual" or not v["name"] or v["name"] in text, (shell, c["name"], v["name"])
assert n > 500, n
END
others=
if command -v zsh >/dev/null; then
    zsh -n "$work/zsh" || fail "zsh does not read it"
    mkdir "$work/fpath" && cp "$work/zsh" "$work/fpath/_shoal"
    # a zsh in a terminal of its own, whose tab key is pressed
    cat >"$work/tab.zsh" <<'END'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1='ready> '; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; setopt no_list_beep; bindkey '^I' complete-word; print 'set'' up'"
zpty -r z all '*set up*ready> ' || exit 1
zpty -w -n z $'shoal pipeline gr\t'
zpty -r -m z all '*pipeline graph*' && print "$all"
zpty -w -n z $'\x15shoal quantize --impo\t'
zpty -r -m z all '*--importance*' && print "$all"
END
    timeout 30 zsh -f "$work/tab.zsh" "$work/fpath" >"$work/tabbed" 2>&1 || fail "zsh completes otherwise: $(cat -v "$work/tabbed")"
    others=", zsh"
fi
if command -v fish >/dev/null; then
    fish --no-execute "$work/fish" || fail "fish does not read it"
    fish_has() { HOME=$work fish -N -c "source $work/fish; complete -C '$1'" 2>&1 | cut -f 1 | grep -qxF -e "$2" || fail "fish: behind \"$1\" there is no $2"; }
    fish_has 'shoal qua' quantize
    fish_has 'shoal pipeline ' graph
    fish_has 'shoal pipeline graph --' --dot
    fish_has 'shoal classify home-in' home-intent
    HOME=$work fish -N -c "source $work/fish; complete -C 'shoal pipeline check --'" | grep -q -e '^--dot' && fail "fish: check has --dot"
    others="$others, fish"
fi

# ---- and they are installed where shells look
cmake --install "$(dirname "$SHOAL_BIN")" --prefix "$work/prefix" >"$work/install.log" 2>&1 || skip "installing: $(tail -1 "$work/install.log")"
cmp -s "$work/prefix/share/bash-completion/completions/shoal" "$work/bash" || fail "bash's is not installed"
cmp -s "$work/prefix/share/zsh/site-functions/_shoal" "$work/zsh" || fail "zsh's is not installed"
cmp -s "$work/prefix/share/fish/vendor_completions.d/shoal.fish" "$work/fish" || fail "fish's is not installed"
docs=$work/prefix/share/doc/shoal
for link in $(grep -oE '\]\([^)#:]+' "$docs/README.md" | cut -c3- | sort -u); do
    [ -e "$docs/$link" ] || fail "README.md is installed without $link"
done
[ "$(cd "$docs/docs" && find . -name '*.md' | sort)" = "$(cd docs && find . -name '*.md' | sort)" ] || fail "docs is installed in part: $(ls "$docs/docs")"
grep -q 'SS shoal quantize' "$work/prefix/share/man/man1/shoal.1" || fail "the manual is installed without its options"
for name in serve fill-mask version; do
    shoal completions manual $name | cmp -s - "$work/prefix/share/man/man1/shoal-$name.1" || fail "shoal-$name.1 is not installed"
done
[ "$(ls "$work/prefix/share/man/man1" | grep -c '^shoal-')" -eq "$(grep -c '^\.SS shoal ' "$work/manual")" ] || fail "not each command has a page"
echo "bash$others"
