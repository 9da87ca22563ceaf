#!/usr/bin/env bash
# shoal pull against a hub and registries on loopback (tests/node/hub.mjs), well-behaved and not.
source "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "Node.js is not installed"
unset HF_TOKEN HF_ENDPOINT SHOAL_MODELS http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
n=0 out=$work/out err=$work/err models=$work/models
mkdir -p "$work/hub"
node tests/node/hub.mjs "$work/hub" >"$work/ports" 2>"$work/hub.err" &
server=$!
for _ in $(seq 200); do [ -s "$work/ports" ] && break; sleep 0.05; done
read -r port other <"$work/ports" || fail "the hub does not start: $(cat "$work/hub.err")"
hub=http://127.0.0.1:$port
oci=oci://127.0.0.1:$port

# pull CODE PATTERN ARGS...: exit status, and what is printed (on stdout for 0, else on stderr)
pull() {
    local code=$1 pattern=$2 status
    shift 2
    : >"$work/hub/log"
    timeout 120 "$SHOAL_BIN" pull --to "$models" --endpoint "$hub" "$@" >"$out" 2>"$err" </dev/null
    status=$?
    [ $status -eq "$code" ] || fail "pull $* ends with $status, not $code: $(tail -3 "$err")"
    grep -qE -e "$pattern" "$([ "$code" -eq 0 ] && echo "$out" || echo "$err")" || fail "pull $* says: $(cat "$out" "$err")"
    n=$((n + 1))
}
sha() { sha256sum "$1" | cut -d' ' -f1; }
whole() { # FILE: it is there, nothing is left of its part
    [ -f "$models/$1" ] && [ ! -e "$models/$1.part" ] && [ ! -e "$models/$1.part.json" ] || fail "$1: $(ls -la "$models")"
    n=$((n + 1))
}
absent() { [ ! -e "$models/$1" ] || fail "$1 is there"; n=$((n + 1)); }
fresh() { rm -rf "$models"; }
requests() { grep -c "$1" "$work/hub/log"; }

# ---- Hugging Face: what is taken
pull 0 'try: shoal classify .*/safe' hf:org/safe
for f in config.json tokenizer.json model.safetensors 1_Pooling/config.json; do whole "safe/$f"; done
for f in pytorch_model.bin README.md onnx .gitattributes; do absent "safe/$f"; done
[ ! -e "$models/models.json" ] || fail "a folder was entered into models.json"
pull 0 'model' hf:org/safe
grep -q 'config.json  is here already' "$err" || fail "it does not say what is here: $(cat "$err")"
[ "$(requests resolve)" -eq 0 ] || fail "files that are here were asked for again"
echo changed >"$models/safe/config.json"
pull 2 'config.json is there and is another file; --force' hf:org/safe
pull 0 model hf:org/safe --force
grep -q Bert "$models/safe/config.json" || fail "--force does not replace"
fresh
pull 0 '4 files' hf:org/sharded
whole sharded/model-00002-of-00002.safetensors
absent sharded/consolidated.safetensors
pull 2 'has 2 GGUF models; name one .*Tiny-Q4_K_M.gguf \(1.0 kB\), Tiny-Q8_0.gguf \(2.0 kB\)' hf:org/quants
grep -qx "hf:org/quants:Tiny-Q8_0.gguf  2.0 kB" "$err" || fail "no list to choose from: $(cat "$err")"
pull 0 'try: shoal run tiny-q4_k_m ' hf:org/quants:q4_k_m
whole Tiny-Q4_K_M.gguf
pull 2 'no file "Q5_0": .*has 2 GGUF' hf:org/quants:Q5_0
pull 0 Tiny-Q8_0 hf:org/quants:Tiny-Q8_0.gguf
pull 1 'PyTorch files alone' hf:org/bin
pull 1 'has no file "x.gguf"' hf:org/bin:x.gguf
pull 1 'no revision "v9"' hf:org/one@v9
pull 1 'no such repository' hf:org/missing
pull 2 'hf:ORG/NAME' hf:
pull 2 'does not say where' org/one
pull 2 'can be no file' hf:org/one:../x.gguf
pull 1 'neither safetensors nor GGUF' hf:org/hostile
[ ! -e "$work/evil.gguf" ] && [ ! -e /etc/evil.gguf ] || fail "a file was written outside"

# ---- models.json
name=$(grep -o '"name": "tiny-q4_k_m"' "$models/models.json") || fail "no entry: $(cat "$models/models.json")"
grep -q "$(sha "$models/Tiny-Q4_K_M.gguf")" "$models/models.json" || fail "the entry has another digest"
"$SHOAL_BIN" models --manifest "$models/models.json" >"$out" || fail "shoal models: $(cat "$out")"
[ "$(grep -c ' ok$' "$out")" -eq 2 ] || fail "shoal models does not list both: $(cat "$out")"
pull 0 '"in_manifest":false' hf:org/quants:q4_k_m --json --no-manifest
fresh
mkdir "$models"
printf '{"models":[{"name":"one-q8_0","file":"x.gguf","sha256":"%064d","quality":{"metric":"a","value":0.83024}}]}' 0 >"$models/models.json"
pull 0 'try: shoal run one-q8_0-2 ' hf:org/one
grep -q 0.83024 "$models/models.json" || fail "other entries changed: $(cat "$models/models.json")"
cp "$models/models.json" "$work/before.json"
pull 0 'one-q8_0-2' hf:org/one
cmp "$work/before.json" "$models/models.json" || fail "a second pull changes models.json"
rm "$models/One-Q8_0.gguf"
printf '{"models":[],"more":[1]}' >"$models/models.json"
pull 1 'was not added to models.json: .*more behind its list' hf:org/one
grep -qx '{"models":\[\],"more":\[1\]}' "$models/models.json" || fail "models.json was spoilt"
whole One-Q8_0.gguf
fresh

# ---- cut off, resumed, busy
pull 0 Cut-Q8_0 hf:org/cut
whole Cut-Q8_0.gguf
[ "$(requests resolve)" -eq 3 ] || fail "$(requests resolve) requests after two cuts"
grep -q 'bytes=200000-' "$work/hub/log" && grep -q 'bytes=400000-' "$work/hub/log" || fail "not resumed: $(cat "$work/hub/log")"
pull 0 Flaky hf:org/flaky
grep -q 'status 503; trying again' "$err" || fail "it does not say that it tries again"

# Ctrl-C leaves a part that the next run goes on with.
"$SHOAL_BIN" pull --to "$models" --endpoint "$hub" hf:org/slow >"$work/slow.out" 2>"$work/slow.err" &
pulling=$!
for _ in $(seq 400); do [ "$(stat -c %s "$models/Slow-Q8_0.gguf.part" 2>/dev/null || echo 0)" -ge 20000 ] && break; sleep 0.05; done
pull 1 'is being fetched by another shoal' hf:org/slow
kill -INT $pulling
wait $pulling
status=$?
[ $status -eq 1 ] || fail "a stopped pull ends with $status"
grep -q 'stopped; the same command goes on where it was' "$work/slow.err" || fail "stopped: $(cat "$work/slow.err")"
absent Slow-Q8_0.gguf
[ "$(stat -c %s "$models/Slow-Q8_0.gguf.part")" -eq 20000 ] || fail "the part is not there"
: >"$work/hub/hurry"
pull 0 Slow-Q8_0 hf:org/slow
grep -q 'bytes=20000-' "$work/hub/log" || fail "not resumed: $(cat "$work/hub/log")"
whole Slow-Q8_0.gguf

# A silent server is given up.
rm "$work/hub/hurry" "$models/Slow-Q8_0.gguf"
pull 1 'no answer in time' hf:org/slow --stall 3 --tries 1
[ "$(stat -c %s "$models/Slow-Q8_0.gguf.part")" -eq 20000 ] || fail "the part of a silent server is not kept"
: >"$work/hub/hurry"

# A part of other bytes is found out by the digest, and fetched anew.
rm -f "$models"/Slow-Q8_0.gguf*
head -c 300000 /dev/zero | tr '\0' G >"$models/Slow-Q8_0.gguf.part"
good=$(sha "$models/Cut-Q8_0.gguf")
printf '{"url":"x","etag":"","sha256":"%s"}' "$good" >"$models/Slow-Q8_0.gguf.part.json"
pull 0 Slow hf:org/slow
[ "$(sha "$models/Slow-Q8_0.gguf")" = "$good" ] || fail "a spoilt part was kept"
rm "$models/Slow-Q8_0.gguf"
head -c 300000 /dev/zero >"$models/Slow-Q8_0.gguf.part" # no state: of nobody knows what
pull 0 Slow hf:org/slow
grep -q 'bytes=' "$work/hub/log" && fail "a part without a state was continued"
pull 0 Norange hf:org/norange

# ---- servers that lie
pull 1 'is not what was promised .*it was removed' hf:org/wrong
absent Wrong-Q8_0.gguf
absent Wrong-Q8_0.gguf.part
pull 1 'sends more than 700001 bytes' hf:org/endless
absent Endless-Q8_0.gguf
pull 1 'announces 1000 bytes, but 700001' hf:org/short
pull 1 'no GGUF file \(a web page\?\)|announces' hf:org/page
pull 1 'are needed and .* are free' hf:org/huge
absent Huge-Q8_0.gguf.part
pull 1 'http://example.com is not encrypted' hf:org/clear
pull 1 'too many redirects' hf:org/round

# ---- tokens stay with the host that they are for
pull 1 'give a token in HF_TOKEN' hf:org/gated
printf 'hf_secret\n' >"$work/token"
pull 0 Gated hf:org/gated --token-file "$work/token"
HF_TOKEN=hf_secret pull 0 Away hf:org/away
grep -q '^main .*Bearer hf_secret' "$work/hub/log" || fail "the token was not sent to the hub"
grep -q '^other .*/away.gguf - -$' "$work/hub/log" || fail "the token went elsewhere: $(cat "$work/hub/log")"
# ---- a redirect to this machine needs the host's name
rm "$models/Away-Q8_0.gguf"
pull 1 'no one has allowed' hf:org/away --force --hosts elsewhere.example
pull 1 'no one has allowed' hf:org/away --force --hosts "elsewhere.example,127.0.0.1:1"
pull 0 Away hf:org/away --force --hosts "127.0.0.1:$other"
pull 1 'token does not open' hf:org/gated --force --token-file <(echo wrong)

# ---- Ollama and OCI
pull 0 'try: shoal run tiny ' ollama:tiny
[ "$(sha "$models/tiny.gguf")" = "$good" ] || fail "another blob"
[ "$(cat "$models/tiny.gguf.template")" = '{{ .Prompt }}' ] || fail "no template beside it"
pull 0 'try: shoal run tiny-1b ' ollama:tiny:1b
pull 1 'has no "2b"' ollama:tiny:2b
pull 0 Open.gguf "$oci/models/open:v1"
grep -q '^other GET /blob/.* - -$' "$work/hub/log" || fail "the registry's token went elsewhere: $(cat "$work/hub/log")"
pull 0 Open.gguf "$oci/models/index"
pull 0 'try: shoal classify .*/folder' "$oci/models/folder"
whole folder/model.safetensors
pull 1 'wants to be called "../evil.gguf"' "$oci/models/evil"
pull 1 'wants to be called "[?]]0;evil' "$oci/models/escape"
LC_ALL=C grep -q "$(printf '\033')" "$err" && fail "a server's words reach the terminal as they are"
pull 1 'is an archive' "$oci/models/tar"
pull 1 'holds no model file' "$oci/models/image"
pull 1 'manifest is not sha256:0000' "$oci/models/lie@sha256:$(printf %064d 0)"
pull 1 'is not what was promised' "$oci/models/liar"
absent Lie.gguf
pull 1 'gives no token \(status 401\)' "$oci/private/tiny"
printf 'me:pass word' >"$work/login"
pull 0 Private.gguf "$oci/private/tiny" --token-file "$work/login"
pull 2 'names no registry' oci://x

# ---- one file by its address
pull 0 plain.gguf "$hub/files/plain.gguf"
pull 2 'nothing tells whether it is the same' "$hub/files/plain.gguf"
pull 0 plain.gguf "$hub/files/plain.gguf" --sha256 "$(sha "$models/plain.gguf")"
pull 1 'is not what was promised' "$hub/files/x/other.gguf" --sha256 "$(printf %064d 0)"
pull 1 'is not encrypted' http://example.com/x.gguf
pull 2 "does not end in a file" "$hub/files/%2e%2e%2fevil"
pull 2 "does not end in a file" "$hub/"
pull 1 'no file of a model \(a web page\?\)' "$hub/files/page"
absent page
absent page.part
pull 0 trees.json "$hub/files/trees.json"
rm "$models/plain.gguf"
head -c 1000 /dev/zero >"$models/plain.gguf.part"
printf '{"url":"%s","etag":"\\"old\\"","sha256":""}' "$hub/files/plain.gguf" >"$models/plain.gguf.part.json"
pull 0 plain.gguf "$hub/files/plain.gguf" --quiet
[ "$(head -c 4 "$models/plain.gguf")" = GGUF ] || fail "a part of an older file was continued"
[ ! -s "$err" ] || fail "--quiet prints: $(cat "$err")"

# With the same strong etag a part is continued, with a weak one never.
curl -s -D "$work/head" -o "$work/body" "$hub/files/plain.gguf"
etag=$(sed -n 's/^etag: "\(.*\)".*/\1/p' "$work/head")
for name in plain weak; do
    rm -f "$models/$name.gguf"
    head -c 1000 "$work/body" >"$models/$name.gguf.part"
    printf '{"url":"%s","etag":"%s","sha256":""}' "$hub/files/$name.gguf" \
        "$([ $name = weak ] || echo "\\\"$etag\\\"")" >"$models/$name.gguf.part.json"
    pull 0 "$name.gguf" "$hub/files/$name.gguf"
    cmp "$work/body" "$models/$name.gguf" || fail "$name.gguf is another file"
    [ "$(requests 'bytes=1000-')" -eq "$([ $name = plain ] && echo 1 || echo 0)" ] || fail "$name: $(cat "$work/hub/log")"
done

# ---- nowhere to put it
touch "$work/plain"
pull 2 'wants a folder' --to '' hf:org/one
"$SHOAL_BIN" pull --to "$work/plain" --endpoint "$hub" hf:org/one >"$out" 2>"$err" && fail "a file as folder is taken"
"$SHOAL_BIN" pull --to "$models" --endpoint http://127.0.0.1:1 hf:org/none >"$out" 2>"$err" && fail "no hub, and yet"
grep -q '127.0.0.1: nobody answers' "$err" || fail "no reason: $(cat "$err")"
kill "$server"
wait "$server" 2>/dev/null
server=
echo "$n checks"
