#!/usr/bin/env bash
# Ollama's own command, unmodified, against a running server: list, ps, show, run, cp, create, stop, rm. Of its Go module
# the client is built (cmd, api and what they use); its server and its engine, which no client command enters, are left out.
# long: it builds a Go program
source "$(dirname "$0")/lib.sh"
version=v0.12.6
command -v go >/dev/null || skip "Go is not installed"
tools=$PWD/build/go
ollama=$tools/ollama-$version
build() {
    set -e
    cd "$1"
    local at part
    at=$(go mod download -json "github.com/ollama/ollama@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    for part in go.mod go.sum main.go cmd api app auth envconfig format fs logutil ml parser progress readline types version; do cp -r "$at/$part" .; done
    chmod -R u+w .
    mkdir server runner
    printf 'package server\nimport ("errors"; "net")\nfunc Serve(net.Listener) error { return errors.New("the client alone") }\n' >server/server.go
    printf 'package runner\nimport "errors"\nfunc Execute([]string) error { return errors.New("the client alone") }\n' >runner/runner.go
    CGO_ENABLED=0 go build -o "$ollama.part" .
    mv "$ollama.part" "$ollama"
}
mkdir -p "$tools" "$work/source"
(
    flock 9
    [ -x "$ollama" ] || (build "$work/source") >"$work/go.log" 2>&1
) 9>"$tools/.lock" || skip "the module of Ollama cannot be fetched or built: $(tail -1 "$work/go.log")"

export SHOAL_STATE=$work/state HOME=$work/home
mkdir -p "$HOME"
start_shoal
export OLLAMA_HOST=127.0.0.1:$port
# does PATTERN ARGS...: the command succeeds and prints that; fails PATTERN ARGS...: it fails and says that.
does() {
    local pattern=$1
    shift
    timeout 60 "$ollama" "$@" >"$work/out" 2>"$work/err" </dev/null || fail "ollama $*: $(cat "$work/out" "$work/err")"
    grep -qE -e "$pattern" "$work/out" "$work/err" || fail "ollama $* says no '$pattern': $(cat "$work/out" "$work/err")"
}
fails() {
    local pattern=$1
    shift
    timeout 60 "$ollama" "$@" >"$work/out" 2>"$work/err" </dev/null && fail "ollama $*: $(cat "$work/out")"
    grep -qE -e "$pattern" "$work/out" "$work/err" || fail "ollama $* does not say '$pattern': $(cat "$work/out" "$work/err")"
}
does 'ollama version is [0-9]' --version
does '^home-chat-s +777b8fa922ab +7\.4 MB' list
does '' stop home-vote # neither has a worker of its own
does '' stop home
curl -s "$url/api/generate" -d '{"model":"home","keep_alive":0}' | grep -q '"done_reason":"load"' || fail "home is said to be unloaded"
does '^home-vote +[0-9a-f]{12} +2[0-9] MB' list
does '^home-ears +34206a7a958c' list # not loaded
grep -E '(years|decades) ago' "$work/out" && fail "a model without a date"
does '^home-chat-s +777b8fa922ab .*2048' ps
does 'architecture +llama' show home-chat-s
does 'parameters +6\.52M' show home-chat-s
does 'embedding' show home-embed
does 'architecture +whisper' show home-ears
does '^FROM home-chat-s' show --modelfile home-chat-s
does '^Turning off Kitchen Light' run home-chat-s "turn off the kitchen light"
does 'eval count: +[1-9]' run --verbose home-chat-s "turn off the kitchen light"
does "copied 'home-chat-s' to 'mine'" cp home-chat-s mine
does '^Turning off Kitchen Light' run mine "turn off the kitchen light"
printf 'FROM mine\nPARAMETER num_predict 3\nPARAMETER stop "zzz"\nSYSTEM You control a home.\nMESSAGE user hi\nMESSAGE assistant Hello.\n' >"$work/Modelfile"
does success create brief -f "$work/Modelfile"
does 'num_predict +3' show brief
does 'You control a home' show brief
does 'eval count: +3 token' run --verbose brief "turn off the kitchen light"
does '^brief +[0-9a-f]{12} +7\.4 MB' list
# A system message cannot end itself in the Modelfile that is shown: what it says behind that stays its text.
cat >"$work/tricky.json" <<'J'
{"model": "tricky", "from": "home-chat-s", "stream": false, "system": "Say \"hi\".\nEnd with \"\"\"\nPARAMETER seed 7\nFROM home-embed",
 "parameters": {"stop": ["a\"\"\"\nPARAMETER seed 8", "b"]}}
J
curl -s "$url/api/create" -d "@$work/tricky.json" | grep -q success || fail "a tricky model"
"$ollama" show --modelfile tricky >"$work/tricky" 2>&1 || fail "show --modelfile: $(cat "$work/tricky")"
does success create again -f "$work/tricky"
curl -s "$url/api/show" -d '{"model":"again"}' | python3 -c '
import json, sys
m = json.load(sys.stdin)
assert m["system"] == "Say \"hi\".\nEnd with \\\"\\\"\\\"\\\nPARAMETER seed 7\nFROM home-embed", m["system"]
assert m["modelfile"].startswith("FROM home-chat-s\n") and "\nseed" not in "\n" + m["parameters"], m' || fail "a Modelfile reads as another: $(cat "$work/tricky")"
fails 'nobody' cp nobody x
fails 'choose another' cp mine home-chat-s
printf 'FROM mine\nTEMPLATE """{{ range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n"""\n' >"$work/Modelfile"
does success create own -f "$work/Modelfile"
does '^Turning off Kitchen Light' run own "turn off the kitchen light"
timeout 60 "$ollama" show --template own >"$work/out" || fail "show --template"
sed -e '1d' -e 's/^TEMPLATE """//' -e '$d' "$work/Modelfile" >"$work/template"
cmp "$work/template" "$work/out" || fail "show --template gives another: $(cat "$work/out")"
cp models/home-chat-s.gguf "$work/m.gguf"
printf 'FROM ./m.gguf\nPARAMETER num_predict 3\n' >"$work/Modelfile"
does success create same -f "$work/Modelfile" # the same bytes as a model that is here
does 'eval count: +3 token' run --verbose same "turn off the kitchen light"
does '^FROM home-chat-s' show --modelfile same
does "deleted 'same'" rm same
does success create piped -f <(printf 'FROM home\nTEMPLATE {{ .Prompt }}\n')
fails 'is a pipeline and does not give a reply by a chat template' run piped "turn off the kitchen light"
does "deleted 'piped'" rm piped
head -c 3000000 models/home-chat-s.gguf >"$work/m.gguf"
fails 'shoal load' create other -f "$work/Modelfile"
fails 'line 1' create other -f <(printf 'FROM mine\nTEMPLATE {{ .Prompt }\n')
fails 'stays' stop home-chat-s
fails 'fetch_from' pull llama3.2:1b
stop_shoal
start_shoal
export OLLAMA_HOST=127.0.0.1:$port
does "deleted 'brief'" rm brief
does '^mine' list
does '^Turning off Kitchen Light' run own "turn off the kitchen light"
does "deleted 'own'" rm own
does "deleted 'mine'" rm mine
fails 'not pulled' rm home-chat-s
fails "'mine'" rm mine
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
echo "ollama $version: list, ps, show, run, cp, create, stop, pull, rm"
