#!/usr/bin/env bash
# Models that come and go while a server runs: loaded, asked, unloaded under streams, broken, killed, kept.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
export XDG_RUNTIME_DIR=$work/run
unset SHOAL_MODELS
mkdir -m 700 "$work/run"
n=0 store=$work/store models=$PWD/models
mkdir -p "$store" "$work/else" "$work/served"
cp "$models/home-intent.gguf" "$work/served/one.gguf"
cp "$models/home-intent.gguf" "$work/served/two.gguf"
cat >"$work/shoal.yaml" <<Y
manifest: $models/models.json
drain_ms: 3000
also_listen: ["unix:$work/front.sock"]
deadline_ms: 0
models:
  - name: home-intent
    fallback: [second]
  - {name: second, path: $work/served/one.gguf}
  - name: home-embed
pipelines:
  - name: p
    stages: [{name: i, kind: classify, model: home-intent}]
library: {store: $store, keep_alive_s: 2}
Y
start_shoal "$work/shoal.yaml"

ask() { # METHOD PATH [BODY]: $code, and the answer in $out
    code=$(curl -s -m 300 -o "$work/out" -w '%{http_code}' -X "$1" "$url$2" ${3:+-H content-type:application/json -d "$3"})
    out=$(cat "$work/out")
    n=$((n + 1))
}
want() { # CODE PATTERN METHOD PATH [BODY]
    local status=$1 pattern=$2
    shift 2
    ask "$@"
    [ "$code" = "$status" ] || fail "$* answers $code, not $status: $out"
    grep -qE -e "$pattern" <<<"$out" || fail "$* says: $out"
}
load() { want "$1" "$2" POST /v1/models/load "$3"; }
unload() { want "$1" "$2" POST /v1/models/unload "$3"; }
served() { curl -s "$url/v1/models" | grep -o "\"id\":\"$1\"" | wc -l; }
pid_of() { curl -s "$url/readyz" | grep -o "\"id\":\"$1/0\"[^}]*" | grep -o '"pid":[0-9]*' | cut -d: -f2; }
workers() { ps -o args= --ppid "$server" | grep -c 'shoal worker'; }
no_model() { [ "$(served "$1")" -eq 0 ] || fail "$1 is listed: $(curl -s "$url/v1/models")"; n=$((n + 1)); }
chat='{"model":"home-chat-s","messages":[{"role":"user","content":"turn on the light"}],"max_tokens":8,"temperature":0}'

# ---- there, and gone
want 404 'model_not_found|no model' POST /v1/chat/completions "$chat"
want 404 "none that does ..generate.. is served: .shoal load home-chat-[sm]. loads one" POST /v1/chat/completions "${chat/home-chat-s/nobody}"
want 404 "none that does ..generate.. is served: .shoal load home-chat-s. loads it" POST /v1/chat/completions "$chat"
want 404 "none that does ..tag.. is served: .shoal load home-slots. loads one" POST /v1/tag '{"model":"x","input":"a"}'
load 200 '"state":"ready".*"loaded_by":"request".*"digest":"[0-9a-f]{64}"' '{"model":"home-chat-s"}'
want 200 '"content":"' POST /v1/chat/completions "$chat"
load 200 '"state":"ready"' '{"model":"home-chat-s"}'
[ "$(workers)" -eq 4 ] || fail "loading twice makes $(workers) workers"
load 200 '"replicas":2,"ready":2' '{"model":"home-chat-s","replicas":2}'
load 200 '"ready":1' '{"model":"home-chat-s","replicas":1}'
load 409 'loaded already.*another name .*--name of shoal load.*shoal stop home-chat-s' '{"model":"home-chat-s","context":128}'
want 200 '"status":"ready"' GET /readyz
unload 200 '"state":"unloaded"' '{"model":"home-chat-s"}'
no_model home-chat-s
unload 404 'is not loaded' '{"model":"home-chat-s"}'
want 404 'model_not_found|no model' POST /v1/chat/completions "$chat"

# ---- what could be loaded
want 200 '"id":"home-slots",[^}]*"state":"loadable","task":"tag",[^}]*"use":"[^"]+","digest":"[0-9a-f]{64}","file_bytes":[0-9]+' GET '/v1/models?loadable=true'
no_model home-slots # without being asked for
want 400 'must be true or false' GET '/v1/models?loadable=maybe'

# ---- its steps
want 200 'resolving' POST /v1/models/load '{"model":"home-slots","stream":true}'
for step in starting ready DONE; do grep -q "$step" <<<"$out" || fail "no step $step: $out"; done
want 200 '"id":"home-slots",[^}]*"state":"ready".*"use":"[^"]+"' GET '/v1/models?loadable=true'
[ "$(grep -o '"id":"home-slots"' <<<"$out" | wc -l)" -eq 1 ] || fail "a loaded model is listed as loadable: $out"
curl -s -N -H 'accept: application/x-ndjson' -H content-type:application/json "$url/v1/models/unload" \
    -d '{"model":"home-slots","stream":true}' >"$work/lines"
[ "$(tail -1 "$work/lines")" = '{"status":"unloaded","model":"home-slots"}' ] || fail "lines: $(cat "$work/lines")"
want 200 '"error":.*does not lie' POST /v1/models/load '{"path":"/etc/passwd","stream":true}'

# ---- what is loaded, and what is not
cp "$models/home-chat-s.gguf" "$store/Tiny One.gguf"
load 200 '"id":"Tiny-One"' '{"path":"Tiny One.gguf"}'
load 200 '"id":"tiny"' "{\"path\":\"$store/Tiny One.gguf\",\"name\":\"tiny\",\"context\":256}"
unload 200 unloaded '{"model":"Tiny-One"}'
unload 200 unloaded '{"model":"tiny"}'
cp -r tests/data/hf/bert-intent "$store/intent"
load 200 '"id":"intent".*"task":"classify"' '{"path":"intent"}'
unload 200 unloaded '{"model":"intent"}'
cp "$models/home-chat-s.gguf" "$work/else/out.gguf"
ln -s "$work/else/out.gguf" "$store/link.gguf"
ln -s "$store/Tiny One.gguf" "$store/inner.gguf"
ln -s "$work/else" "$store/folder"
ln -s /nowhere "$store/dangling.gguf"
for path in /etc/passwd "$work/else/out.gguf" "$work/else/none.gguf" link.gguf folder/out.gguf ../else/out.gguf \
    "$store/../else/out.gguf" "$store/../none" / . .. ./../.. "$store" /proc/self/mem /dev/zero; do
    load 403 'does not lie in a folder' "{\"path\":\"$path\"}"
done
load 200 '"id":"two"' "{\"path\":\"$work/served/two.gguf\"}" # beside a file that is served
unload 200 unloaded '{"model":"two"}'
load 404 'there is no' '{"path":"none.gguf"}'
load 404 'there is no' '{"path":"dangling.gguf"}'
load 404 'there is no' "{\"path\":\"$store/none.gguf\"}"
load 200 '"id":"inner"' '{"path":"inner.gguf","name":"inner"}'
unload 200 unloaded '{"model":"inner"}'
mkdir "$work/some" && cp "$models/home-chat-s.gguf" "$work/some/a.gguf"
"$SHOAL_BIN" load "$work/some" --server "$url" >"$work/said" 2>&1 && fail "a folder that is no model is loaded"
grep -q "the folder $work/some is no model, but it holds some; load one of them: $work/some/a.gguf" "$work/said" || fail "a folder of models: $(cat "$work/said")"
mkfifo "$store/pipe.gguf"
load 400 'neither a file nor a folder' '{"path":"pipe.gguf"}'
head -c 4000 "$models/home-chat-s.gguf" >"$store/cut.gguf"
printf 'GGUF' >"$store/short.gguf"
: >"$store/empty.gguf"
head -c 100000 /dev/urandom >"$store/noise.gguf"
mkdir "$store/nothing"
for path in cut.gguf short.gguf empty.gguf noise.gguf nothing; do
    load 422 'does not load: .' "{\"path\":\"$path\",\"name\":\"broken\"}"
    no_model broken
done
load 422 'SHA-256|digest' "{\"path\":\"Tiny One.gguf\",\"sha256\":\"$(printf %064d 1)\"}"
no_model Tiny-One
if [ "$(id -u)" -ne 0 ]; then
    cp "$models/home-chat-s.gguf" "$store/secret.gguf"
    chmod 000 "$store/secret.gguf"
    load 403 'cannot be read' '{"path":"secret.gguf"}'
fi
for name in a/b '../x' 'a b' 'a\u0001b' 'a\nb' '' "$(printf %0100d 0)" 'a:b' 'ü'; do
    load 400 'name: ' "{\"model\":\"home-slots\",\"name\":\"$name\"}"
done
load 400 "no key 'replica' here" '{"model":"home-slots","replica":1}'
load 400 'say which model' '{}'
load 400 '.' '[]'
load 400 '.' 'no json'
unload 400 'which one' '{}'
unload 400 'no key' '{"model":"a","now":true}'
unload 404 . '{"model":"a/b"}'
unload 404 . '{"model":"a\u0007"}'
load 404 "no model 'nope'.*home-chat-m" '{"model":"nope"}'
load 403 'nothing is fetched from huggingface.co.*fetch_from' '{"model":"hf:org/one"}'
load 507 'needs about [0-9]+ MiB.*MiB free' '{"model":"home-chat-s","kv_mb":1048576,"replicas":64}'
no_model home-chat-s
[ "$(workers)" -eq 3 ] || fail "$(workers) workers are left"

# ---- what the configuration uses
unload 409 'the pipeline p uses' '{"model":"home-intent"}'
unload 409 'home-intent, which falls back' '{"model":"second"}'
load 409 'shoal.yaml' '{"model":"home-intent","replicas":2}'
unload 200 unloaded '{"model":"home-intent","force":true}'
no_model home-intent
want 200 '"status":"ready"' GET /readyz
load 200 '"loaded_by":"configuration"' '{"model":"home-intent"}'
want 200 . POST /v1/process '{"pipeline":"p","input":"turn on the light"}'

# ---- twice at once, and many at once
for i in 1 2 3 4 5 6; do
    curl -s -o "$work/same.$i" "$url/v1/models/load" -H content-type:application/json -d '{"model":"home-slots"}' &
    pids[i]=$!
done
wait "${pids[@]}"
for i in 1 2 3 4 5 6; do grep -q '"state":"ready"' "$work/same.$i" || fail "one of six: $(cat "$work/same.$i")"; done
[ "$(workers)" -eq 4 ] || fail "six loads make $(workers) workers"
unload 200 unloaded '{"model":"home-slots"}'

# ---- unloaded under streams: what runs ends, nothing is lost
load 200 ready '{"model":"home-chat-s"}'
# A client that comes while it drains hears that the model is not there, and nobody's stream is cut.
long='{"model":"home-chat-s","messages":[{"role":"user","content":"tell me everything"}],"max_tokens":900,"temperature":1,"seed":5,"ignore_eos":true,"stream":true}'
curl -s "$url/v1/chat/completions" -H 'cache-control: no-store' -H content-type:application/json -d "$long" >"$work/alone" || fail "a stream alone"
running() { for i in $(seq 6); do [ "$(grep -c '"content":"' "$work/stream.$i")" -gt 1 ] || return 1; done; }
n_whole() { cat "$work"/stream.* | grep -c DONE; }
for _ in $(seq 10); do # until some of them run still, when all have begun
    for i in $(seq 6); do
        : >"$work/stream.$i"
        curl -s -N "$url/v1/chat/completions" -H 'cache-control: no-store' -H content-type:application/json -d "$long" >"$work/stream.$i" &
        pids[i]=$!
    done
    for _ in $(seq 2000); do running && break; sleep 0.01; done
    [ "$(n_whole)" -lt 6 ] && break
    wait "${pids[@]}"
done
[ "$(n_whole)" -eq 6 ] && fail "the streams were over before the unload: nothing is tried here"
unload 200 unloaded '{"model":"home-chat-s"}'
wait "${pids[@]}"
text() { sed -n 's/.*"content":"\(.*\)"},"logprobs".*/\1/p' "$1" | tr -d '\n'; }
for i in $(seq 6); do
    grep -q 'data: \[DONE\]' "$work/stream.$i" || fail "a stream was cut: $(tail -c 300 "$work/stream.$i")"
    [ "$(text "$work/stream.$i")" = "$(text "$work/alone")" ] || fail "stream $i is another"
    n=$((n + 1))
done
no_model home-chat-s

# ---- its worker dies while it loads, and once it is there
load 200 ready '{"model":"home-chat-m","name":"m"}'
kill -9 "$(pid_of m)"
for _ in $(seq 400); do [ "$(pid_of m)" -gt 0 ] && curl -s "$url/v1/models/m" -m 1 | grep -q '"state":"ready"' && break; sleep 0.02; done
want 200 '"state":"ready"' GET /v1/models/m
unload 200 unloaded '{"model":"m"}'
curl -s -o "$work/killed" "$url/v1/models/load" -H content-type:application/json -d '{"model":"home-chat-m","name":"k"}' &
loader=$!
for _ in $(seq 300); do p=$(pid_of k); [ "${p:-0}" -gt 0 ] && break; sleep 0.005; done
[ "${p:-0}" -gt 0 ] && kill -9 "$p" || fail "no worker was there to be killed while it loads"
wait "$loader"
grep -q '"state":"ready"' "$work/killed" || fail "a worker that was killed once: $(cat "$work/killed")"
unload 200 unloaded '{"model":"k","drain":false}'

# ---- a file that was read again has one more model
printf '  - {name: later, path: %s/home-slots.gguf, replicas: 2}\n' "$models" >"$work/more"
cp "$work/shoal.yaml" "$work/before.yaml"
sed "/  - name: home-embed/r $work/more" "$work/before.yaml" >"$work/shoal.yaml"
kill -HUP "$server"
for _ in $(seq 400); do grep -q 'event=reloaded' "$log" && break; sleep 0.05; done
load 200 '"id":"later".*"replicas":2' '{"model":"later"}'
unload 200 unloaded '{"model":"later"}'
cp "$work/before.yaml" "$work/shoal.yaml"

# ---- idle ones go
load 200 '"unloads_in_ms"' '{"model":"home-slots","keep_alive_s":1}'
for _ in $(seq 200); do [ "$(served home-slots)" -eq 0 ] && break; sleep 0.05; done
no_model home-slots

# ---- the store
printf '{"models":[{"name":"one","file":"one.gguf","sha256":"%s","source":"hf:org/one"}]}' \
    "$(sha256sum <"$models/home-slots.gguf" | cut -d' ' -f1)" >"$store/models.json"
cp "$models/home-slots.gguf" "$store/one.gguf"
load 200 '"id":"one"' '{"model":"hf:org/one"}'
want 409 'is served as' DELETE /v1/models/one
want 200 '"deleted":true' DELETE '/v1/models/one?force=true'
no_model one
[ ! -e "$store/one.gguf" ] || fail "the file is still there"
want 404 "there is no model 'one' here; GET /v1/models.loadable=true lists" DELETE /v1/models/one
want 409 "'p' is a pipeline of shoal.yaml: take it out there" DELETE /v1/models/p
want 403 'was not pulled into the store' DELETE /v1/models/home-chat-s
want 403 . DELETE /v1/models/..%2f..%2fetc
want 404 . DELETE '/v1/models/%00%01'
[ -e "$models/home-chat-s.gguf" ] || fail "a model of the manifest was removed"
want 403 'was not pulled' DELETE '/v1/models/intent?force=true'
[ -e "$store/intent/config.json" ] || fail "a folder that was put there by hand was removed"
printf '{"source":"hf:a/b","files":["config.json","model.safetensors"]}' >"$store/intent/.pulled.json"
want 200 '"deleted":true' DELETE /v1/models/intent
[ ! -e "$store/intent/config.json" ] || fail "the folder's files are still there"
[ -e "$store/intent/tokenizer.json" ] || fail "what was not pulled into the folder is gone"

mkdir "$store/photos"
: >"$store/photos/cat"
want 403 'by hand' DELETE '/v1/models/photos?force=true'
[ -e "$store/photos/cat" ] || fail "a folder that is no model was removed"

# ---- a client that would not wait so long
code=$(curl -s -m 60 -o "$work/out" -w '%{http_code}' -H 'x-shoal-deadline-ms: 1' -H content-type:application/json "$url/v1/models/load" -d '{"model":"home-chat-m","name":"late"}')
[ "$code" = 504 ] || grep -q '"state":"ready"' "$work/out" || fail "a deadline of 1 ms: $code $(cat "$work/out")"
load 200 '"state":"ready"' '{"model":"home-chat-m","name":"late"}'
unload 200 unloaded '{"model":"late"}'

# ---- from the terminal
"$SHOAL_BIN" load home-slots --server "$url" >"$work/o" 2>"$work/e" </dev/null || fail "shoal load: $(cat "$work/e")"
grep -qx 'home-slots is ready' "$work/o" || fail "shoal load says $(cat "$work/o")"
grep -qx 'home-slots: starting' "$work/e" || fail "no progress: $(cat "$work/e")"
"$SHOAL_BIN" load nope --server "$url" 2>"$work/e" && fail "shoal load nope is fine"
grep -q "there is no model 'nope'" "$work/e" || fail "$(cat "$work/e")"
"$SHOAL_BIN" stop home-slots --server "$url" -q >"$work/o" 2>"$work/e" || fail "shoal stop: $(cat "$work/e")"
"$SHOAL_BIN" stop home-slots --server "$url" >"$work/o" 2>"$work/e" && fail "shoal stop twice is fine"
[ "$(cat "$work/o" "$work/e")" = "shoal stop: the model 'home-slots' is not loaded" ] || fail "shoal stop of nothing: $(cat "$work/o" "$work/e")"
printf '{"models":[{"name":"two","file":"two.gguf","sha256":"%064d","source":"hf:a/two"}]}' 2 >"$store/models.json"
: >"$store/two.gguf"
printf weights >"$store/two.gguf"
"$SHOAL_BIN" rm two --server "$url" --json | grep -q '"deleted":true,"files":1,"bytes":7' || fail "shoal rm"
[ ! -e "$store/two.gguf" ] || fail "shoal rm left the file"
printf '{"models":[{"name":"two","file":"two.gguf","sha256":"%064d","source":"hf:a/two"}]}' 2 >"$store/models.json"
"$SHOAL_BIN" rm two --from "$store" | grep -q "^removed the entry of 'two' in $store/models.json" || fail "shoal rm --from"
"$SHOAL_BIN" rm two --from "$store" 2>/dev/null && fail "shoal rm twice is fine"
"$SHOAL_BIN" load x --server http://127.0.0.1:1 2>"$work/e"
grep -q 'no Shoal serves there' "$work/e" || fail "$(cat "$work/e")"

# ---- any file, by the socket of this server's user
own=$(echo "$XDG_RUNTIME_DIR/shoal.$(id -u)/${url##*:}.sock")
[ "$(stat -c '%a %F' "${own%/*}")" = "700 directory" ] && [ "$(stat -c '%a %F' "$own")" = "600 socket" ] || fail "the socket: $(ls -la "$XDG_RUNTIME_DIR")"
"$SHOAL_BIN" load "$work/else/out.gguf" --name anywhere --server "$url" 2>"$work/e" >/dev/null || fail "load of any file: $(cat "$work/e")"
want 200 '"id":"anywhere"' GET /v1/models
unload 200 unloaded '{"model":"anywhere"}'
ln -s "$work/else/out.gguf" "$work/link.gguf"
(cd "$work" && "$SHOAL_BIN" load link.gguf --name linked --keep --server "$url" 2>"$work/e" >/dev/null) || fail "load of a link: $(cat "$work/e")"
"$SHOAL_BIN" load "$work/nothing.gguf" --server "$url" 2>"$work/e" && fail "a missing file is fine"
grep -q "there is no '$work/nothing.gguf'" "$work/e" || fail "of a missing file: $(cat "$work/e")"
"$SHOAL_BIN" load /proc/self/mem --name odd --server "$url" 2>"$work/e" && fail "an odd file is fine"
load 403 'does not lie in a folder' "{\"path\":\"$work/else/out.gguf\",\"name\":\"odd\"}" # over TCP as before
code=$(curl -s -o "$work/out" -w '%{http_code}' --unix-socket "$work/front.sock" http://x/v1/models/load -H content-type:application/json \
    -d "{\"path\":\"$work/else/out.gguf\",\"name\":\"odd\"}")
[ "$code" = 403 ] || fail "a configured socket, which may be a proxy's, answers $code: $(cat "$work/out")"

# ---- kept over a restart
load 200 '"keep":true' '{"model":"home-slots","keep":true,"replicas":2}'
load 200 ready '{"path":"Tiny One.gguf","name":"gone","keep":true}'
load 200 ready '{"model":"home-chat-s"}'
for _ in $(seq 100); do grep -q gone "$SHOAL_STATE/loaded.json" 2>/dev/null && break; sleep 0.05; done
mv "$store/Tiny One.gguf" "$work/tiny"
stop_shoal
[ "$stopped" -eq 0 ] || fail "it stopped with $stopped"
start_shoal "$work/shoal.yaml"
for _ in $(seq 400); do curl -s "$url/v1/models" | grep -q '"ready":2,' && [ "$(served linked)" -eq 1 ] && break; sleep 0.05; done
[ "$(served linked)" -eq 1 ] || fail "a file of any folder is not kept"
unload 200 unloaded '{"model":"linked"}'
want 200 '"id":"home-slots".*"ready":2' GET /v1/models
no_model home-chat-s
grep -q 'event=not_restored.*Tiny One' "$log" || fail "nobody says that a file is gone"
grep -q gone "$SHOAL_STATE/loaded.json" || fail "what is gone for now is forgotten"
unload 200 unloaded '{"model":"home-slots"}'
for _ in $(seq 100); do grep -q home-slots "$SHOAL_STATE/loaded.json" || break; sleep 0.05; done
grep -q home-slots "$SHOAL_STATE/loaded.json" && fail "what was unloaded is still kept"
stop_shoal
echo '{"models": [{"model": "home-slots"}, {"model": 3}, {"modl": "x"}], "x' >"$SHOAL_STATE/loaded.json"
start_shoal "$work/shoal.yaml"
grep -q 'event=not_restored.*loaded.json' "$log" || fail "a broken book is not told"
stop_shoal
echo '{"models": [{"modl": "x"}, {"model": "home-slots"}]}' >"$SHOAL_STATE/loaded.json"
start_shoal "$work/shoal.yaml"
for _ in $(seq 400); do [ "$(served home-slots)" -eq 1 ] && break; sleep 0.05; done
[ "$(served home-slots)" -eq 1 ] || fail "a good entry beside a broken one is lost"
grep -q 'models\[0\].*modl' "$log" || fail "the broken entry is not named"

# ---- stopped while something loads
for i in 1 2 3; do
    curl -s -o "$work/last.$i" "$url/v1/models/load" -H content-type:application/json -d "{\"model\":\"home-chat-m\",\"name\":\"last$i\",\"kv_mb\":8}" &
done
sleep 0.02
stop_shoal
[ "$stopped" -eq 0 ] || fail "it stopped with $stopped while models loaded"
for i in 1 2 3; do
    [ -e "$work/last.$i" ] || continue
    grep -qE 'shutting down|"state":"ready"|^$' "$work/last.$i" || [ ! -s "$work/last.$i" ] || fail "at the end: $(cat "$work/last.$i")"
done

# ---- only with an admin's key
digest() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
{ cat "$work/shoal.yaml"; printf 'api_keys:\n  - {name: boss, sha256: "%s", admin: true}\n  - {name: kid, sha256: "%s"}\n' "$(digest boss)" "$(digest kid)"; } >"$work/keys.yaml"
rm -f "$SHOAL_STATE/loaded.json"
start_shoal "$work/keys.yaml"
load 401 'API key' '{"model":"home-slots"}'
key() { curl -s -X "$2" -H "authorization: Bearer $1" -H content-type:application/json "$url$3" -d "${4:-}"; }
for what in '/v1/models/load {"model":"home-slots"}' '/v1/models/unload {"model":"home-embed"}' '/api/pull {"model":"x"}'; do
    key kid POST "${what%% *}" "${what#* }" | grep -q 'admin' || fail "a plain key may ask $what: $(key kid POST "${what%% *}" "${what#* }")"
done
key kid DELETE /v1/models/one | grep -q admin || fail "a plain key removes models"
key boss POST /v1/models/load '{"model":"home-chat-s"}' | grep -q '"state":"ready"' || fail "an admin's key loads nothing"
key kid POST /api/generate '{"model":"home-chat-s","prompt":"","keep_alive":0}' | grep -q "admin" || fail "a plain key unloads"
key kid POST /api/generate '{"model":"home-chat-s","prompt":"hello","keep_alive":0,"stream":false}' | grep -q '"done":true' || fail "a plain key asks"
key boss GET /v1/models | grep -q home-chat-s || fail "a plain key unloaded it by keep_alive"
SHOAL_API_KEY=kid "$SHOAL_BIN" stop home-chat-s --server "$url" 2>"$work/e" && fail "shoal stop with a plain key"
SHOAL_API_KEY=boss "$SHOAL_BIN" stop home-chat-s --server "$url" >/dev/null 2>&1 || fail "shoal stop with an admin's key"
stop_shoal

# ---- models that came with the program: no request removes them, nor what models.json says of them
mkdir "$work/installed"
cp "$models"/{models.json,home-intent.gguf,home-slots.gguf} "$work/installed"
cp "$models/home-slots.gguf" "$work/installed/by-hand.gguf"
sums() { (cd "$work/installed" && sha256sum -- *); }
installed=$(sums)
printf 'manifest: %s/models.json\nmodels: [{name: home-intent}, {name: other, path: %s/by-hand.gguf}]\n' "$work/installed" "$work/installed" >"$work/installed.yaml"
start_shoal "$work/installed.yaml"
for name in home-intent home-slots other by-hand.gguf; do
    want 403 'was not pulled into the store.*by hand' DELETE "/v1/models/$name?force=true"
    want 403 'was not pulled into the store.*by hand' DELETE /api/delete "{\"model\":\"$name\"}"
    want 403 'was not pulled into the store' DELETE /api/delete "{\"name\":\"$name:latest\"}"
    SHOAL_API_KEY='' "$SHOAL_BIN" rm "$name" --force --server "$url" 2>"$work/e" && fail "shoal rm $name"
    grep -q 'was not pulled' "$work/e" || fail "shoal rm $name: $(cat "$work/e")"
done
"$SHOAL_BIN" rm home-slots --from "$work/installed" 2>"$work/e" && fail "shoal rm --from removes a bundled model"
grep -q 'was not pulled.*--force removes it all the same' "$work/e" || fail "shoal rm --from: $(cat "$work/e")"
# The person at the machine may: a copy unasked in a pipe, a bundled model with --force; on a terminal a y is wanted.
mkdir "$work/own"
cp "$work/installed"/* "$work/own"
cp "$models/home-slots.gguf" "$work/own/other.gguf"
bytes=$(stat -c %s "$work/own/other.gguf")
"$SHOAL_BIN" rm by-hand.gguf --from "$work/own" | grep -q "^removed $work/own/by-hand.gguf ([0-9.]* MB)$" || fail "shoal rm of a copy"
[ ! -e "$work/own/by-hand.gguf" ] || fail "shoal rm left the copy"
for no in models.json ../own/other.gguf other.txt .; do
    "$SHOAL_BIN" rm "$no" --from "$work/own" --force 2>"$work/e" && fail "shoal rm $no"
    grep -q 'no model.s file is called so' "$work/e" || fail "shoal rm $no: $(cat "$work/e")"
done
if command -v script >/dev/null; then
    rm_typing() {
        local status
        (sleep 0.3; echo "$1") | script -qefc "stty cols 200; '$SHOAL_BIN' rm other --from '$work/own' ${2:-}" /dev/null >"$work/typed"
        status=$?
        tr -d '\r' <"$work/typed" >"$work/e"
        return $status
    }
    rm_typing n && fail "a no removes: $(cat "$work/e")"
    grep -q "^remove $work/own/other.gguf ([0-9.]* MB)?$" "$work/e" && [ -e "$work/own/other.gguf" ] || fail "shoal rm on a terminal: $(cat "$work/e")"
    rm_typing y || fail "a yes removes nothing: $(cat "$work/e")"
    [ ! -e "$work/own/other.gguf" ] || fail "a yes removes nothing: $(cat "$work/e")"
    : >"$work/own/other.gguf"
    rm_typing '' --yes || fail "--yes: $(cat "$work/e")"
    grep -q '\[y/N\]' "$work/e" && fail "--yes asks: $(cat "$work/e")"
else
    "$SHOAL_BIN" rm other --from "$work/own" >/dev/null || fail "shoal rm of a copy by its name"
fi
"$SHOAL_BIN" rm home-slots --from "$work/own" --force --json | grep -q "\"files\":1,\"bytes\":$bytes" || fail "shoal rm --force"
[ ! -e "$work/own/home-slots.gguf" ] && ! grep -q '"home-slots"' "$work/own/models.json" || fail "shoal rm --force left it"
[ -e "$work/own/home-intent.gguf" ] && grep -q '"home-intent"' "$work/own/models.json" || fail "shoal rm took another model"
for name in '' . .. models.json ../installed/home-slots.gguf "$work/installed/home-slots.gguf"; do
    ask DELETE "/v1/models/$(sed 's,/,%2f,g' <<<"$name")?force=true"
    [ "$code" -ge 400 ] || fail "DELETE '$name' answers $code: $out"
done
# inference.RepositoryModelUnloadRequest {model_name: "home-slots"} unloads a model, and that is all that gRPC can.
printf '\0\0\0\0\014\022\012home-slots' | curl -s -m 60 --http2-prior-knowledge -o /dev/null -D "$work/trailers" -H content-type:application/grpc \
    -H 'te: trailers' --data-binary @- "$url/inference.GRPCInferenceService/RepositoryModelUnload"
grep -qi '^grpc-status' "$work/trailers" || fail "no gRPC answer: $(cat "$work/trailers")"
[ "$(sums)" = "$installed" ] || fail "the installation is another: $(diff <(echo "$installed") <(sums))"
stop_shoal

# ---- names: one rule for all, and none that stands for something else
start_shoal "$work/shoal.yaml"
for name in . .. --help -x .hidden; do load 400 'name: ' "{\"model\":\"home-slots\",\"name\":\"$name\"}"; done
load 409 "'p' is a pipeline of shoal.yaml" '{"model":"home-slots","name":"p"}'
# ---- more than the machine carries is said before anything starts
before=$(workers)
load 507 'replicas of .* are more than' '{"model":"home-slots","replicas":64}'
[ "$(workers)" -eq "$before" ] || fail "workers were started"
load 400 'threads' '{"model":"home-slots","threads":1024}'
no_model home-slots
stop_shoal

# ---- beside what the control plane has placed
"$SHOAL_BIN" ca init --cluster here --state "$work/gate" >/dev/null || fail "shoal ca init"
printf 'manifest: %s/models.json\ncluster: {listen: "127.0.0.1:0", state: %s}\nmodels: [{name: home-intent}]\n' "$models" "$work/gate" >"$work/gate.yaml"
start_shoal "$work/gate.yaml"
load 200 '"state":"ready"' '{"model":"home-slots","keep":true}'
unload 409 'whose control plane places it' '{"model":"home-intent","force":true}'
sleep 1.2 # a plan later
want 200 '"id":"home-slots"' GET /v1/models
stop_shoal
[ -s "$work/gate/loaded.json" ] || fail "nothing is kept in the cluster's state folder"

# ---- not here
sed 's/library: {/library: {load: off, /' "$work/shoal.yaml" >"$work/off.yaml"
start_shoal "$work/off.yaml"
load 403 'load: off' '{"model":"home-slots"}'
unload 403 'load: off' '{"model":"home-embed"}'
want 403 'load: off' DELETE /v1/models/one
stop_shoal
echo "$n requests"
