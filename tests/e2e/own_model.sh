#!/usr/bin/env bash
# A model of one's own: served by its path alone, with samples that fit it; a shoal.yaml written for what lies in a folder.
source "$(dirname "$0")/lib.sh"
export HOME=$work/home SHOAL_STATE=$work/state
unset SHOAL_MODELS XDG_STATE_HOME
root=$PWD data=$PWD/tests/data/hf models=$PWD/models
n=0
here=$work/here
mkdir -p "$here/empty" "$here/some" "$here/a" "$here/b"
cp "$models/home-chat-s.gguf" "$here/my.Q4_K_M.gguf"
cp "$models/home-embed.gguf" "$here/a/Same Name.gguf"
cp "$models/home-intent.gguf" "$here/b/Same Name.gguf"
cp "$models/home-chat-s.gguf" "$here/some/inner.gguf"
{ echo noise; head -c 5000 /dev/urandom; } >"$here/noise.gguf" # a first byte of its own: { begins trees
echo 'no model' >"$here/notes.txt"
cd "$here" || fail "no folder"

# refused CODE WORDS ARGS...: one sentence, and nothing was started.
refused() {
    local code=$1 words=$2
    shift 2
    timeout 20 "$SHOAL_BIN" serve --port 0 "$@" >"$work/out" 2>"$log"
    local rc=$?
    [ $rc -eq "$code" ] || fail "serve $* ends with $rc, wanted $code: $(cat "$log")"
    grep -qE "shoal serve: .*$words" "$log" || fail "serve $*: no '$words' in: $(cat "$log")"
    [ "$(grep -vc '^try: ' "$log")" -eq 1 ] || fail "serve $* complains in several lines: $(cat "$log")"
    n=$((n + 1))
}
refused 1 "there is no file or folder 'none.gguf'; give the path of a GGUF file" none.gguf
refused 1 "noise.gguf cannot be served: not a GGUF file .*; give a GGUF file or a Hugging Face folder" noise.gguf
: >nothing.gguf
head -c 2000 my.Q4_K_M.gguf >head.gguf
head -c -1000 my.Q4_K_M.gguf >cut.gguf
refused 1 "nothing.gguf cannot be served: the file is empty; copy or download it again" nothing.gguf
refused 1 "head.gguf cannot be served: key .*: the file is incomplete; copy or download it again" head.gguf
refused 1 "cut.gguf cannot be served: tensor .*: the file is incomplete; copy or download it again" cut.gguf
# A command that opens the file says the same.
for command in run show "models inspect"; do
    # shellcheck disable=SC2086 # two words
    "$SHOAL_BIN" $command ./nothing.gguf 2>"$work/said" >/dev/null < <(echo hi) && fail "$command of an empty file"
    grep -q 'nothing.gguf: the file is empty; copy or download it again' "$work/said" || fail "$command: $(cat "$work/said")"
done
refused 1 "notes.txt cannot be served: .*; give a GGUF file" -m notes.txt
refused 1 "empty cannot be served: .*; give a GGUF file" empty
refused 1 "the folder some is no model, but it holds some; serve one of them: some/inner.gguf" some
refused 1 "there is no file, folder or model 'nothing-of-that-name': models.json has .*home-chat-s" nothing-of-that-name
refused 2 "models are named by the command line or by --config" my.Q4_K_M.gguf -c shoal.yaml
refused 2 "-c is the configuration; the context is --context 4096" my.Q4_K_M.gguf -c 4096
"$SHOAL_BIN" serve my.Q4_K_M.gguf --ctx-size 4096 2>&1 | grep -q '^try: --context, ' || fail "--ctx-size is not known"
refused 2 "--threads wants a whole number from 1 to 64, not .500" my.Q4_K_M.gguf --threads 500
refused 2 "--name is for one model" my.Q4_K_M.gguf a/Same* --name x
refused 2 "--name may hold letters" my.Q4_K_M.gguf --name "a b"
refused 2 "are for models that the command line names" --context 100
refused 2 "--max-batch wants a whole number" my.Q4_K_M.gguf --max-batch 0
refused 2 "--context: my.Q4_K_M.gguf: the model was made for [0-9]+ tokens, so its context cannot be 99999: [0-9]+ is the most" my.Q4_K_M.gguf --context 99999

# A folder that this user may not enter; root may enter any.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    mkdir -m 700 "$work/closed"
    chmod 755 "$work" && cp my.Q4_K_M.gguf "$work/closed/m.gguf"
    for command in serve chat show; do
        (cd / && setpriv --reuid=65534 --clear-groups "$SHOAL_BIN" $command "$work/closed/m.gguf" </dev/null) >"$work/out" 2>&1 && fail "$command reads what it may not"
        grep -q 'closed/m.gguf.*: Permission denied' "$work/out" || fail "$command of a closed folder: $(cat "$work/out")"
    done
fi

# ready ARGS...: served, and the banner in $work/ready.
ready() {
    : >"$work/ready"
    "$SHOAL_BIN" serve --port 0 --banner "$@" >"$work/ready" 2>"$log" &
    server=$!
    for _ in $(seq 400); do
        grep -q 'Ctrl-C stops it' "$work/ready" && break
        kill -0 "$server" 2>/dev/null || fail "serve $* exited: $(tail -n 2 "$log")"
        sleep 0.05
    done
    url=$(grep -o 'http://[a-z0-9.]*:[0-9]*' "$work/ready" | head -1)
    [ -n "$url" ] || fail "serve $* was not ready in 20 s"
}

# Each command of the banner works as it stands there.
try_samples() {
    local command k=0
    sed -n '/^Try$/,/^$/p' "$work/ready" | sed -e ':a' -e '/\\$/N; s/\\\n//; ta' | grep '^  ' >"$work/commands"
    while IFS= read -r command; do
        command=${command/  curl /curl -sf -m 60 }
        bash -c "$command" >"$work/out" 2>"$work/err" </dev/null || fail "a sample fails: $command: $(cat "$work/out" "$work/err")"
        k=$((k + 1))
    done <"$work/commands"
    [ $k -eq "$1" ] || fail "$k samples, wanted $1: $(cat "$work/ready")"
    n=$((n + k))
}
ids() { curl -s "$url/v1/models" | grep -o '"id":"[^"]*"' | cut -d'"' -f4 | tr '\n' ' '; }

ready --host localhost my.Q4_K_M.gguf -m "a/Same Name.gguf" "b/Same Name.gguf" --context 128
[ "$(ids)" = "Same-Name my.Q4_K_M Same-Name-2 " ] || fail "served are: $(ids)"
grep -q '^  my.Q4_K_M  *generate, context 128' "$work/ready" || fail "the banner: $(cat "$work/ready")"
grep -q 'process\|home-intent' "$work/ready" && fail "samples of what is not served: $(cat "$work/ready")"
try_samples 5
kill -HUP "$server" # there is no file to read again, and that is no reason to stop
for _ in $(seq 200); do grep -q event=nothing_to_reload "$log" && break; sleep 0.05; done
grep -q event=nothing_to_reload "$log" || fail "SIGHUP: $(tail -2 "$log")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "it stopped with $stopped"

# By a name of models.json; its own name for clients.
ready home-slots --name spans
[ "$(ids)" = "spans " ] || fail "served are: $(ids)"
try_samples 1
stop_shoal
# A name that no model may have is an alias.
ready my.Q4_K_M.gguf --name llama3.2:3b
[ "$(ids)" = "my.Q4_K_M llama3.2:3b " ] || fail "served are: $(ids)"
curl -s "$url/v1/completions" -d '{"model":"llama3.2:3b","prompt":"a","max_tokens":1}' | grep -q '"model":"llama3.2:3b"' ||
    fail "--name of other letters is not served: $(curl -s "$url/v1/models")"
curl -s "$url/v1/models/load" -d '{"model":"home-slots","name":"a:b"}' | grep -q "aliases of shoal.yaml may hold ':' and '/'" || fail "load says nothing of aliases"
stop_shoal

# What a reference names is fetched first; then no hub is needed any more, also not after a crash.
if command -v node >/dev/null; then
    mkdir -p "$work/hub"
    node "$root/tests/node/hub.mjs" "$work/hub" "$models/home-chat-s.gguf" >"$work/ports" 2>"$work/hub.err" &
    hub=$!
    for _ in $(seq 200); do [ -s "$work/ports" ] && break; sleep 0.05; done
    read -r hub_port _ <"$work/ports" || fail "the hub does not start: $(cat "$work/hub.err")"
    export HF_ENDPOINT=http://127.0.0.1:$hub_port SHOAL_MODELS=$work/run
    export SHOAL_HOST=127.0.0.1:$(free_port 3) # nobody's
    "$SHOAL_BIN" run hf:org/missing hello >"$work/out" 2>&1 && fail "a missing repository is run"
    grep -q "no such repository" "$work/out" || fail "run of a missing repository: $(cat "$work/out")"
    "$SHOAL_BIN" classify hf:org/home hello >"$work/out" 2>&1 && fail "shoal classify fetches"
    grep -q "shoal pull hf:org/home fetches it" "$work/out" || fail "classify of a reference: $(cat "$work/out")"
    "$SHOAL_BIN" run hf:org/home --max-tokens 4 hello >"$work/out" 2>"$work/e" || fail "run of a reference: $(cat "$work/e")"
    grep -q 'GET /org/home/resolve' "$work/hub/log" && [ -s "$work/out" ] || fail "run fetches nothing: $(cat "$work/out" "$work/e")"
    rm "$work/hub/log"
    echo hello | "$SHOAL_BIN" chat hf:org/home --no-home --max-tokens 4 >"$work/out" 2>"$work/e" || fail "chat of a reference: $(cat "$work/e")"
    [ -s "$work/out" ] && [ ! -e "$work/hub/log" ] || fail "chat fetches what is here: $(cat "$work/hub/log")"
    export SHOAL_MODELS=$work/store
    unset SHOAL_HOST
    refused 1 "no such repository" hf:org/missing
    timeout 20 "$SHOAL_BIN" serve --port 0 hf:org/quants >"$work/out" 2>"$log" && fail "a reference to two files is served"
    grep -q 'hf:org/quants:Tiny-Q8_0.gguf' "$log" || fail "no choices: $(cat "$log")"
    ready -m hf:org/home --name fetched
    grep -q 'GET /org/home/resolve' "$work/hub/log" || fail "nothing was fetched: $(cat "$work/hub/log")"
    end $hub
    [ "$(ids)" = "fetched " ] || fail "served are: $(ids)"
    kill -9 "$(gateway)"
    for _ in $(seq 200); do [ "$(grep -c 'event=ready url' "$log")" -eq 2 ] && break; sleep 0.05; done
    [ "$(ids)" = "fetched " ] || fail "after a crash served are: $(ids), $(tail -2 "$log")"
    stop_shoal
    ready hf:org/home
    try_samples 3
    stop_shoal
    unset HF_ENDPOINT SHOAL_MODELS
fi

# A generator whose files bring no chat template talks all the same, and ends where it would speak for the user.
ready "$data/llama-gqa"
grep -q 'default chat template' "$work/ready" || fail "the banner: $(cat "$work/ready")"
[ "$(grep -c event=default_chat_template "$log")" -eq 1 ] || fail "the log does not say so once"
curl -s "$url/v1/models" | grep '"chat_template":"default"' | grep -q '"tools":"none"' || fail "/v1/models does not say so: $(curl -s "$url/v1/models")"
try_samples 3
ask() { curl -s -m 60 "$url$1" -H 'content-type: application/json' -d "$2"; }
messages='[{"role":"system","content":"Be brief."},{"role":"user","content":"hello"}]'
ask /v1/chat/completions "{\"model\":\"llama-gqa\",\"messages\":$messages,\"max_tokens\":4}" | grep -q '"role":"assistant"' || fail "chat completions"
ask /api/chat "{\"model\":\"llama-gqa\",\"stream\":false,\"messages\":$messages,\"options\":{\"num_predict\":4}}" | grep -q '"done":true' || fail "/api/chat"
ask /v1/responses '{"model":"llama-gqa","input":"hello","max_output_tokens":16}' | grep -q '"object":"response"' || fail "/v1/responses"
ask /apply-template "{\"model\":\"llama-gqa\",\"messages\":$messages}" | grep -qF 'System: Be brief.\nUser: hello\nAssistant:' || fail "its text: $(ask /apply-template "{\"model\":\"llama-gqa\",\"messages\":$messages}")"
"$SHOAL_BIN" chat llama-gqa --server "$url" --no-home -n 4 <<<hello >/dev/null 2>"$work/err" || fail "shoal chat: $(cat "$work/err")"
if command -v script >/dev/null; then
    source "$root/tests/e2e/terminal.bash"
    at_terminal chat --server "$url" llama-gqa --no-home --no-history
    grep -q 'no chat template: it gets the default one' "$screen" || fail "no word of its chat template: $(cat -v "$screen")"
    leave
fi
stop_shoal
"$SHOAL_BIN" chat "$data/llama-gqa" -n 4 <<<hello >/dev/null 2>"$work/err" || fail "shoal chat of a file: $(cat "$work/err")"

# The banner of a configuration of one's own: what is served, and nothing else.
cat >"$work/own.yaml" <<Y
manifest: $models/models.json
models:
  - {name: orders, path: $data/cross-encoder-rerank}
  - {name: fills, path: $data/electra-intent}
  - {name: texts, path: $data/flan-t5-gated}
pipelines:
  - name: mine
    devices: [{id: switch.pump, name: Garden Pump}]
    stages: [{name: request, kind: ground, lexicon: lexicons/home.yaml}]
Y
ready -c "$work/own.yaml"
grep -q 'turn on the garden pump' "$work/ready" || fail "the banner: $(cat "$work/ready")"
grep -q 'chat mine' "$work/ready" || fail "no chat with the pipeline: $(cat "$work/ready")"
grep -q 'home-' "$work/ready" && fail "samples of what is not served: $(cat "$work/ready")"
try_samples 5
stop_shoal

# ---- init
expect_init() { # CODE WORDS ARGS...
    local code=$1 words=$2
    shift 2
    "$SHOAL_BIN" init "$@" >"$work/out" 2>&1
    local rc=$?
    [ $rc -eq "$code" ] && grep -qE "$words" "$work/out" || fail "init $* ends with $rc: $(cat "$work/out")"
    n=$((n + 1))
}
expect_init 1 'holds no model and no Home Assistant export' empty
[ ! -e empty/shoal.yaml ] || fail "something was written"
mkdir "$here/wet"
echo '[{"entity_id":"water_heater.a","state":"eco","attributes":{"friendly_name":"Boiler"}}]' >"$here/wet/states.json"
expect_init 1 'has no words for any of the devices there \(1 water_heater\)' wet
mkdir "$here/wet/lexicons" # of one's own, as docs/understanding.md tells
sed -e 's/^kinds:$/&\n  water_heater:\n    domains: [water_heater]\n    words: [boiler]\n    states: {"on": [eco], "off": []}/' \
    -e 's/^    kinds: \[light, switch, fan/    kinds: [water_heater, light, switch, fan/' "$root/lexicons/home.yaml" >"$here/wet/lexicons/home.yaml"
expect_init 0 'shoal.yaml: 0 models, 1 device$' wet
ready -c wet/shoal.yaml
"$SHOAL_BIN" process "is the boiler on?" --server "$url" >"$work/out" 2>&1 || fail "process: $(cat "$work/out")"
grep -q 'Yes, Boiler is eco' "$work/out" || fail "a kind of one's own: $(cat "$work/out")"
"$SHOAL_BIN" process "turn off the boiler" --server "$url" >"$work/out" 2>&1 || fail "process: $(cat "$work/out")"
grep -q 'call *water_heater.turn_off' "$work/out" || fail "a kind of one's own: $(cat "$work/out")"
stop_shoal
expect_init 1 'No such file' none
expect_init 0 'some/shoal.yaml: 1 model$' some
expect_init 2 'is there already; --force replaces it' some
expect_init 0 'next: .*shoal serve -c some/shoal.yaml' some --force
# Names that would write YAML of their own, files that are none, and more models than one command takes.
mkdir "$here/odd"
for name in "a: b" '#c' "q\"u'o" $'nel\xc2\x85x' $'ls\xe2\x80\xa8x' 日本 $'tab\tx'; do ln -s "$models/home-intent.gguf" "$here/odd/$name.gguf"; done
echo no >"$here/odd/"$'bad\nlisten: 0.0.0.0:9\n#.gguf'
echo no >"$here/odd/"$'bad\xe2\x80\xa9x: 1.gguf'
ln -s nowhere "$here/odd/gone.gguf"
ln -s loop.gguf "$here/odd/loop.gguf"
ln -s "$models/home-intent.gguf" "$here/odd/"$'\xff.gguf'
expect_init 0 'odd/shoal.yaml: 7 models \(5 left out; the file says why\)$' odd
grep -qF 'bad\nlisten: 0.0.0.0:9\n#.gguf is left out' odd/shoal.yaml || fail "a name with line breaks: $(cat odd/shoal.yaml)"
grep -q 'gone.gguf is left out: No such file' odd/shoal.yaml || fail "a link to nothing: $(cat odd/shoal.yaml)"
"$SHOAL_BIN" config show odd/shoal.yaml --json >"$work/out" 2>&1 || fail "config show: $(cat "$work/out")"
python3 - "$here/odd" "$work/out" <<'P' || fail "the paths: $(cat "$work/out")"
import json, os, sys
want = {os.fsdecode(n) for n in os.listdir(os.fsencode(sys.argv[1])) if os.path.exists(os.path.join(os.fsencode(sys.argv[1]), n))}
got = {os.path.basename(m["path"]) for m in json.load(open(sys.argv[2]))["models"]}
assert len(got) == 7 and got < want, (got, want)
P
mkdir "$here/many"
for i in $(seq 66); do ln -s "$models/home-intent.gguf" "$here/many/$i.gguf"; done
expect_init 0 'many/shoal.yaml: 64 models \(2 left out; the file says why\)$' many
grep -q '2 more are left out' many/shoal.yaml || fail "what is too much: $(tail -3 many/shoal.yaml)"
# Folders of other programs have a config.json, too; models come first, and a file of one's own stays.
mkdir "$here/crowd"
for i in $(seq 10 79); do mkdir "$here/crowd/$i" && echo '{}' >"$here/crowd/$i/config.json"; done
ln -s "$models/home-intent.gguf" "$here/crowd/z.gguf"
cp -r "$root/tests/data/hf/bert-intent" "$here/crowd/zz"
echo mine >"$here/crowd/shoal.yaml.new"
expect_init 0 'crowd/shoal.yaml: 2 models \(70 left out; the file says why\)$' crowd
[ "$(cat "$here/crowd/shoal.yaml.new")" = mine ] || fail "init takes a file away: $(ls "$here/crowd")"
[ "$(find "$here/crowd" -name 'shoal.yaml*' | wc -l)" -eq 2 ] || fail "init leaves files: $(ls "$here/crowd")"
cat >"$here/some/states.json" <<'J'
[{"entity_id":"light.attic","state":"off","attributes":{"friendly_name":"Attic \"Big\" Light"}},
 {"entity_id":"lock.shed","state":"locked","attributes":{}},
 {"entity_id":"climate.loft","state":"heat","attributes":{"friendly_name":"Loft Heat","temperature":68}},
 {"entity_id":"lawn_mower.moe","state":"docked","attributes":{"friendly_name":"Robot Mower"}},
 {"entity_id":"automation.night","state":"on","attributes":{"friendly_name":"Night"}},
 {"entity_id":"fan.hidden","state":"off","attributes":{"friendly_name":"Hidden Fan"}}]
J
cat >"$here/some/core.entity_registry" <<'J'
{"version":1,"minor_version":15,"key":"core.entity_registry","data":{"entities":[
 {"entity_id":"lock.shed","name":"Shed Lock","original_name":"Lock","area_id":"garden","aliases":["tool lock"],"hidden_by":null,"disabled_by":null},
 {"entity_id":"fan.hidden","name":null,"hidden_by":"user","disabled_by":null}]}}
J
echo '{"version":1,"key":"core.area_registry","data":{"areas":[{"id":"garden","name":"Garden"}]}}' >"$here/some/core.area_registry"
echo '{"unit_system":{"temperature":"°F"}}' >"$here/some/config.json"
expect_init 0 'shoal.yaml: 1 model, 4 devices$' some --force
grep -q 'left out, as lexicons/home.yaml has no words for them: 1 automation$' "$work/out" || fail "what is left out: $(cat "$work/out")"
grep -q '# left out, .*: 1 automation$' some/shoal.yaml || fail "what is left out: $(cat some/shoal.yaml)"
grep -qF '{id: "climate.loft", name: "Loft Heat", state: "heat", unit: "°F"}' some/shoal.yaml || fail "the unit: $(cat some/shoal.yaml)"
expect_init 0 '"left_out":1,"models_left_out":0,"unknown":{"automation":1}' some --force --json
grep -qF '{id: "lock.shed", name: "Shed Lock", state: "locked", area: "Garden", aliases: ["tool lock"]}' some/shoal.yaml || fail "the devices: $(cat some/shoal.yaml)"
grep -q 'automation\.\|Hidden' some/shoal.yaml && fail "what is no device: $(cat some/shoal.yaml)"
(cd some && "$SHOAL_BIN" config check >"$work/out" 2>&1) || fail "config check: $(cat "$work/out")"
ready -c some/shoal.yaml
"$SHOAL_BIN" process "lock the tool lock" --server "$url" >"$work/out" 2>&1 || fail "process: $(cat "$work/out")"
grep -q 'call *lock.lock {"target":"lock.shed"}' "$work/out" || fail "a device command: $(cat "$work/out")"
"$SHOAL_BIN" process "start the mower" --server "$url" >"$work/out" 2>&1 || fail "process: $(cat "$work/out")"
grep -q 'call *lawn_mower.start_mowing {"target":"lawn_mower.moe"}' "$work/out" || fail "the mower: $(cat "$work/out")"
"$SHOAL_BIN" process "set the loft heat to 70" --server "$url" >"$work/out" 2>&1 || fail "process: $(cat "$work/out")"
grep -q 'set_temperature {.*"temperature":70' "$work/out" || fail "in degrees Fahrenheit: $(cat "$work/out")"
stop_shoal
echo "$n checks"
