#!/usr/bin/env bash
# The command line's fixed forms, exit codes and numbers, on the small models of tests/data.
source "$(dirname "$0")/lib.sh"
data=$PWD/tests/data
llama=$data/hf/llama-gqa intent=$data/hf/bert-intent ner=$data/hf/bert-ner embed=$data/hf/minilm-embed
out=$work/out err=$work/err
n=0

# expect CODE PATTERN ARGS...: exit status, and an extended regular expression in what is printed: on
# stdout for 0, else on stderr, which must then be one sentence (and the hint, for wrong usage).
expect() {
    local code=$1 pattern=$2 status
    shift 2
    "$SHOAL_BIN" "$@" >"$out" 2>"$err" <"${input:-/dev/null}"
    status=$?
    [ $status -eq "$code" ] || fail "shoal $* ends with $status, not $code: $(head -2 "$err")"
    if [ "$code" -eq 0 ]; then
        grep -qE -e "$pattern" "$out" || fail "shoal $* prints: $(head -c 300 "$out")"
    else
        grep -qE -e "$pattern" "$err" || fail "shoal $* complains: $(cat "$err")"
        [ "$(grep -vc '^try: ' "$err")" -eq 1 ] || fail "shoal $* complains in several lines: $(cat "$err")"
        [ ! -s "$out" ] || fail "shoal $* fails and prints: $(head -c 300 "$out")"
    fi
    n=$((n + 1))
}

# near PATTERN WANT: the number after PATTERN in stdout is WANT to 1e-4.
near() {
    local got
    got=$(grep -oE -e "$1-?[0-9.e+-]+" "$out" | head -1 | sed -E "s/^.*[^0-9.e+-]//")
    awk -v a="$got" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && d <= 1e-4) }' ||
        fail "after $1 comes \"$got\", not $2"
    n=$((n + 1))
}

# ---- every command: help on stdout, --json known, wrong usage is 2
commands=$("$SHOAL_BIN" help all | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p')
for c in $commands; do
    expect 0 "^usage: shoal $c" "$c" --help
    grep -qE -e '--json' "$out" || fail "shoal $c --help does not name --json"
    expect 2 'no-such-option' "$c" --no-such-option
done
for all in "" "help all"; do
    "$SHOAL_BIN" $all >"$out" 2>&1
    ! grep -qE '.{81}' "$out" || fail "shoal $all is wider than 80 columns: $(grep -E '.{81}' "$out")"
done
[ "$("$SHOAL_BIN" --help | wc -l)" -le 24 ] || fail "shoal --help has more than 24 rows"
for c in $commands; do "$SHOAL_BIN" --help | grep -qwF -e "$c" || fail "shoal --help does not name $c"; done
expect 0 '^usage: shoal pipeline check \[options\] FILE' help pipeline check
expect 2 'usage: shoal nodes \[options\]$' nodes one
expect 0 '^shape +6 layers' show home-chat-s --here
"$SHOAL_BIN" help all | grep -q '^measure: what is answered' || fail "help all: $("$SHOAL_BIN" help all | grep ^measure)"
expect 2 'no "ca revok", did you mean "revoke"\?' ca revok
expect 0 'shoal [0-9]+\.[0-9]+\.[0-9]+' --version
expect 0 '^\{"version":"[0-9.]+","isa":"[a-z0-9]+","usable":\["scalar"' version --json
for v in -v -V; do expect 0 '^shoal [0-9]+\.[0-9]+\.[0-9]+$' $v; done
expect 2 'no command "frobnicate"; try: shoal --help' frobnicate
expect 2 'no command "chta", did you mean "chat"\? try: shoal --help' chta
expect 2 'no command "list", did you mean "ps"\?' list
expect 2 'no command "quantise", did you mean "quantize"\?' quantise
expect 0 '^usage: shoal quantize' help quantize
expect 2 'did you mean "run"' help rnu
expect 2 'try: --temp, or shoal run --help' run --tmep 1
expect 2 'try: --max-tokens, or' run --max_tokens=1
expect 2 'try: shoal run --help' run --wholly-unlike-any
expect 2 'missing arguments' classify "$intent"
expect 2 'too many arguments' embed "$embed" a b

# ---- the fixed forms, with the reference's numbers
ids='2,59,529,186,362,279,50,302,333,282,348,358,184,15,55,319,392,178,17,3'
expect 0 "^\\{\"ids\":\\[$ids\\],\"offsets\":\\[\\[0,0\\],\\[0,1\\],\\[1,3\\],\\[3,4\\],\\[5,7\\]," \
    tokenize "$intent" "Turn on the kitchen lights, please." --json
expect 0 '^\{"ids":\[59,529,186,362\],"offsets":\[\[0,1\],\[1,3\],\[3,4\],\[5,7\]\]' \
    tokenize "$intent" --no-special "Turn on" --json
expect 0 '"ids":\[2,368,294,339,354,34,3,354,339,40,59,288,182,285,279,' \
    tokenize "$intent" "what is it?" --pair "it is a test of the kitchen lights." --json
# a folder of a tokenizer alone, and one of nothing
mkdir "$work/words" "$work/nothing"
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' hello '##s' >"$work/words/vocab.txt"
expect 0 '^\{"ids":\[2,5,6,1,3\],"offsets":\[\[0,0\],\[0,5\],\[5,6\],\[7,10\],\[0,0\]\]' \
    tokenize "$work/words" "Hellos you" --json
expect 1 'nothing: there is no tokenizer.json, nor vocab.txt' tokenize "$work/nothing" a
expect 0 '^\{"labels":\[\{"label":"alarm_set","score":0\.28195[0-9]*\},.*\],"logits":\[' \
    classify "$intent" "Turn on the kitchen lights, please." --json
expect 0 '^\{"labels":\[\{"label":"lights_on","score":' \
    classify "$intent" "what is it?" --pair "it is a test of the kitchen lights." --json
near '"score":' 0.290605009
expect 0 '^\{"spans":\[\{"start":0,"end":7,.*"label":"ORG","text":"Turn on","score":0\.28708' \
    tag "$ner" "Turn on the kitchen lights, please." --json
grep -q '"logits"' "$out" && fail "tag prints logits without --tokens"
expect 0 '"logits":\[\[-?[0-9]' tag "$ner" "Turn on" --tokens --json
expect 0 '^\{"embedding":\[-?[0-9.e-]+,' embed "$embed" "Turn on" --json
awk -F'[][,]' '{ for (i = 2; i < NF; i++) s += $i * $i; exit !(s > 0.9999 && s < 1.0001) }' "$out" ||
    fail "an embedding is not of length 1"
expect 0 '^\{"logits":\[\[-?[0-9.e-]+,.*\],\[.*\],\[.*\]\]\}$' logits "$llama" --ids 1,592,655 --json
sed 's/.*\],\[/[/; s/\]\]}$/]/' "$out" >"$work/third"
expect 0 '^\{"logits":\[\[[^]]*\]\]\}$' logits "$llama" --ids 1,592,655 --last 1 --json
sed 's/^{"logits":\[//; s/\]}$//' "$out" | cmp -s - "$work/third" ||
    fail "--last 1 differs from the last of all positions"
expect 0 '^\{"text":".*","ids":\[438,438,49,485,214,682,485,214\],.*"timings":\{"prompt_tokens":21,' \
    run "$llama" -p "Turn on the kitchen lights, please." -n 8 --temp 0 --json
expect 0 '"ids":\[438,438\]' run "$llama" "Turn on the kitchen lights, please." -n 2 --temp 0 --json
expect 2 'there is no prompt: shoal run MODEL PROMPT' run "$llama"
"$SHOAL_BIN" run --here home-chat-s "turn on the kitchen light" >"$out" 2>"$err" || fail "run home-chat-s: $(cat "$err")"
grep -q 'light.kitchen' "$out" || fail "run home-chat-s: $(cat "$out")"
grep -q '^home-chat-s: a reply, told of the home' "$err" || fail "it does not say what it did: $(cat "$err")"
printf 'Turn on the kitchen lights, please.\n' >"$work/text"
input=$work/text expect 0 '"label":"alarm_set","score":0\.28195' classify "$intent" - --json
expect 0 '"name":"home-intent".*"use":"telling which of 65 kinds.*"state":"ok"' models --json
expect 0 'for: device commands and sensor alerts' models
awk 'length($0) > 80 { bad = 1 } END { exit bad }' "$out" || fail "models is wider than 80 columns"
expect 0 'architecture  llama, for "generate"' models inspect "$llama" --quick
expect 0 '^verdict       it runs here' models inspect "$llama"
expect 0 '"architecture":"llama".*"kv_token_bytes":[1-9].*"unsupported":null\}$' models inspect "$llama" --quick --json
expect 2 'there is no "models examine"' models examine "$llama"
expect 1 'no file or folder "no-such-model"' models inspect no-such-model
# A folder of older files takes its tokenizer along into GGUF.
older() { # FIXTURE FILE FROM
    rm -rf "$work/older" && mkdir "$work/older" && cp "$data/hf/$1"/*.safetensors "$data/hf/$1/config.json" "$work/older/"
    cp "$3" "$work/older/$2"
    [ "$2" != vocab.json ] || printf '#version: 0.2\na b\nab c\n' >"$work/older/merges.txt"
    "$SHOAL_BIN" quantize "$work/older" "$work/older.gguf" >/dev/null 2>&1 || fail "quantize a folder with $2"
    for text in 'Turn on the lights, 42!' ' abc  turned </s> cafÃ© [MASK]'; do
        "$SHOAL_BIN" tokenize --json "$work/older" "$text" >"$work/folder.json" || fail "$2: no tokenizer in the folder"
        "$SHOAL_BIN" tokenize --json "$work/older.gguf" "$text" | cmp - "$work/folder.json" || fail "$2 came out otherwise"
    done
    n=$((n + 1))
}
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nturn\non\n##ed\nthe\n,\n' >"$work/words.txt"
echo '{"a":0,"b":1,"c":2,"ab":3,"abc":4,"t":5,"u":6,"r":7,"n":8,"\u0120":9}' >"$work/pairs.json"
older bert-intent vocab.txt "$work/words.txt"
older gpt2 vocab.json "$work/pairs.json"
older llama-gqa tokenizer.model "$data/tokenizers/spm/bpe.model"
older t5-small-relu spiece.model "$data/tokenizers/spm/unigram.model"
# What a file says wrongly is 1, whoever reads it.
mkdir "$work/torn" && cp "$data"/hf/llama-gqa/* "$work/torn/"
sed -i 's/"num_attention_heads": *[0-9]*/"num_attention_heads": 3/' "$work/torn/config.json"
torn='config.json: 3 query heads cannot share 2 key/value heads'
expect 1 "$torn" models inspect "$work/torn"
expect 1 "$torn" run "$work/torn" hello
expect 1 "$torn" logits "$work/torn" --ids 1
expect 1 "$torn" quantize "$work/torn" "$work/torn.gguf"
expect 1 "$torn" bench "$work/torn"
echo text >"$work/some.txt"
expect 1 "$torn" quantize "$work/torn" "$work/torn.gguf" --importance "$work/some.txt"
expect 2 'fits no matrix' quantize "$llama" "$work/torn.gguf" --override nothing=q8_0
expect 0 'layer_output_norm.bias' quantize "$intent" "$work/wide.gguf"
awk 'length($0) > 80 && !/wide.gguf/ { bad = 1 } END { exit bad }' "$out" || fail "quantize's table is wider than 80 columns"

# ---- quantise: both sources, each type; the logits stay near; q8_0 of a quantised copy is the same file
for type in f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q4_k_m q6_k iq4_nl; do
    expect 0 "^\{\"file\":\"$work/$type.gguf\",\"sha256\":\"[0-9a-f]{64}\"" \
        quantize "$llama" "$work/$type.gguf" --type $type --json
    expect 0 '"ids":\[[0-9]+\]' run "$work/$type.gguf" -p "Turn on the kitchen lights, please." -n 1 --json
done
# bfloat16 sources lose nothing, but rotary rows are in another order, and so are the sums over them.
for type in f32 f16 bf16; do
    "$SHOAL_BIN" logits "$work/$type.gguf" --ids 1,592,655 --last 1 --json |
        sed 's/^{"logits":\[//; s/\]}$//' >"$work/logits"
    paste -d' ' <(tr ',' '\n' <"$work/third" | tr -d '[]') <(tr ',' '\n' <"$work/logits" | tr -d '[]') |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5) bad = 1 } END { exit bad || NR != 704 }' ||
        fail "logits of $type differ from those of the folder"
done
expect 0 'token_embd +F32>Q8_0' quantize "$work/f32.gguf" "$work/again.gguf"
cmp -s "$work/again.gguf" "$work/q8_0.gguf" || fail "q8_0 from GGUF and from the folder differ"
"$SHOAL_BIN" quantize "$llama" "$work/again.gguf" >/dev/null 2>"$err"
grep -q $'[\r\033]' "$err" && fail "progress in a pipe moves the cursor"
grep -q 'of 30 tensors' "$err" || fail "no progress in a pipe"
[ "$(wc -l <"$err")" -le 4 ] || fail "more than a line each quarter: $(cat "$err")"
expect 0 '^23 tensors became Q5_0, not Q4_K: rows that are no multiple of 256$' quantize "$llama" "$work/again.gguf" --type q4_k
expect 0 '"fallbacks":\[\{"wanted":"Q4_K","got":"Q5_0","tensors":23\}\]' quantize "$llama" "$work/again.gguf" --type q4_k --json
expect 2 "q5_k_m, f32" quantize "$llama" "$work/x.gguf" --type q5_km
expect 2 'fits no matrix' quantize "$llama" "$work/x.gguf" --override 'blk.*.fnn_down=q8_0'
printf 'Turn on the kitchen lights.\nIs the door locked?\n' >"$work/learn"
"$SHOAL_BIN" quantize "$llama" "$work/learned.gguf" --type q4_0 --importance "$work/learn" >/dev/null 2>"$err"
grep -q 'importance of [0-9]* matrices from [1-9][0-9]* tokens' "$err" || fail "importance: $(cat "$err")"
grep -Eq '^quantize: ([0-9]+) of \1 bytes read$' "$err" || fail "no progress: $(cat "$err")"
grep -q "$(printf '\033')" "$err" && fail "a pipe gets a terminal's line"
cmp -s "$work/learned.gguf" "$work/q4_0.gguf" && fail "importance changed nothing"
"$SHOAL_BIN" quantize "$intent" "$work/learned.gguf" --type q4_0 --importance "$work/learn" >/dev/null 2>"$err" ||
    fail "importance of an encoder: $(cat "$err")"
expect 2 'is empty: nothing to learn' quantize "$llama" "$work/x.gguf" --importance /dev/null
mkfifo "$work/pipe"
expect 2 'no regular file' quantize "$llama" "$work/pipe"
[ -p "$work/pipe" ] || fail "quantize replaced a pipe"

# ---- a full disk leaves the old file, and no temporary
mkdir "$work/disk"
cp "$work/q4_0.gguf" "$work/disk/model.gguf"
(ulimit -f 200; exec "$SHOAL_BIN" quantize "$llama" "$work/disk/model.gguf" --type f32) >/dev/null 2>"$err"
[ $? -eq 1 ] && grep -q 'old file is untouched' "$err" || fail "a full disk: $(tail -1 "$err")"
cmp -s "$work/q4_0.gguf" "$work/disk/model.gguf" || fail "a full disk harmed the old file"
[ "$(ls "$work/disk")" = model.gguf ] || fail "a full disk left $(ls "$work/disk")"
if [ -c /dev/full ]; then
    "$SHOAL_BIN" version >/dev/full 2>"$err"
    [ $? -eq 1 ] && grep -q 'standard output' "$err" || fail "unwritable output is not reported"
fi

# ---- damaged and wrong files: 1, and the cause
head -c 100000 "$work/f16.gguf" >"$work/short.gguf"
expect 1 'short.gguf: tensor .* ends [0-9]+ bytes past the file' logits "$work/short.gguf" --ids 1
head -c 300 "$work/f16.gguf" >"$work/short.gguf"
expect 1 'short.gguf: ' logits "$work/short.gguf" --ids 1
: >"$work/empty.gguf"
expect 1 'empty.gguf: ' embed "$work/empty.gguf" hi
expect 1 'not a GGUF file' embed "$PWD/CMakeLists.txt" hi
cp -r "$llama" "$work/folder"
head -c 200000 "$llama/model.safetensors" >"$work/folder/model.safetensors"
expect 1 'model.safetensors: tensor .* past the file' run "$work/folder" -p a
rm "$work/folder/model.safetensors"
expect 1 'neither model.safetensors nor' run "$work/folder" -p a
sed 's/"model_type": *"llama"/"model_type":"mamba"/' "$llama/config.json" \
    >"$work/folder/config.json"
expect 1 'architecture "mamba" is not supported' run "$work/folder" -p a
sed 's/"num_hidden_layers": *3/"num_hidden_layers": 1000000000/' "$llama/config.json" \
    >"$work/folder/config.json"
expect 1 '"num_hidden_layers" is 1000000000' run "$work/folder" -p a
cp "$llama/model.safetensors" "$work/folder"
sed 's/"num_hidden_layers": *3/"num_hidden_layers": 2/' "$llama/config.json" >"$work/folder/config.json"
expect 1 'tensor blk.2.[a-z_.]+ lies behind the 2 layers' run "$work/folder" -p a
mkdir "$work/models"
cp "$work/q8_0.gguf" "$work/models/toy.gguf"
printf '{"models":[{"name":"toy","file":"toy.gguf","task":"generate","sha256":"%064d"}]}' 0 >"$work/models/models.json"
expect 1 'SHA-256 is [0-9a-f]{64} but 0{64} is pinned' run --manifest "$work/models/models.json" toy -p a
SHOAL_MODELS=$work/models "$SHOAL_BIN" models >"$out" 2>"$err"
[ $? -eq 1 ] && grep -q 'toy .*wrong digest' "$out" || fail "models does not show the wrong digest: $(cat "$out" "$err")"
expect 1 'no file or folder "no-such-model"' run no-such-model -p a

# ---- wrong input: 2, a model of another kind: 1
expect 2 'not UTF-8 at byte 1' classify "$intent" $'a\xffb'
expect 2 'ids|vocabulary' logits "$llama" --ids 1,704
expect 2 'numbers with commas' logits "$llama" --ids 1,,2
expect 2 '--temp: temperature is -1' run "$llama" -p a --temp -1
expect 2 'max-tokens wants a whole number' run "$llama" -p a -n many
printf 'a\0b' >"$work/text"
input=$work/text expect 2 'NUL' embed "$embed" -
yes 'turn on ' | head -c 1000000 >"$work/text"
input=$work/text expect 1 'maximum context length is 128 tokens, and the text has [0-9]+' classify "$intent" -
expect 1 'is a model for "classify", not for "embed"' embed "$intent" a
cp -r "$llama" "$work/broken"
printf 'a\n{%% if %%}' >"$work/broken/chat_template.jinja"
printf 'hello\n' >"$work/text"
input=$work/text expect 1 'its chat template cannot be used: .*line 2' chat "$work/broken"

# ---- edit: other metadata, the same answers
"$SHOAL_BIN" quantize "$llama" "$work/plain.gguf" --type q8_0 >/dev/null 2>&1
expect 0 'sha256 [0-9a-f]{64}' edit "$work/plain.gguf" "$work/edited.gguf" --set general.name=other
[ "$("$SHOAL_BIN" logits "$work/plain.gguf" --ids 1,2,3)" = "$("$SHOAL_BIN" logits "$work/edited.gguf" --ids 1,2,3)" ] ||
    fail "an edited file computes otherwise"
expect 2 'no text' edit "$work/plain.gguf" "$work/edited.gguf" --set llama.block_count=3
expect 2 'not KEY=TEXT' edit "$work/plain.gguf" "$work/edited.gguf" --set general.name
expect 2 'line 2' edit "$work/plain.gguf" "$work/edited.gguf" --chat-template "$work/broken/chat_template.jinja"
# ---- logits of every kind of network: labels, rows of an encoder, pictures, series, speech
expect 2 'give --ids or --input' logits "$intent"
expect 2 'decoder-ids are for encoder-decoders' logits "$intent" --ids 1 --decoder-ids 1
"$SHOAL_BIN" classify "$intent" "Turn on the kitchen lights, please." --json | sed 's/.*"logits":/{"logits":[/; s/}$/]}/' >"$work/want"
expect 0 '^\{"logits":\[\[' logits "$intent" --ids "$ids" --json
cmp -s "$out" "$work/want" || fail "logits of a classifier are not those of classify: $(cat "$out" "$work/want")"
expect 2 'wants --decoder-ids' logits "$data/hf/t5-small-relu" --ids 5,6,1
expect 0 '^\{"encoder":\[\[.*\]\],"logits":\[\[[^]]*\],\[[^]]*\]\]\}$' \
    logits "$data/hf/t5-small-relu" --ids 5,6,1 --decoder-ids 0,4 --json
expect 0 'position 1: best id ' logits "$data/hf/t5-small-relu" --ids 5,6,1 --decoder-ids 0,4
expect 0 'encoder row 2: ' logits "$data/hf/t5-small-relu" --ids 5,6,1 --encoder
# reference NAME TENSOR: the tensor of a fixture's expected file, a number a line
reference() {
    node -e 'const fs = require("fs"), b = fs.readFileSync(process.argv[1]), n = Number(b.readBigUInt64LE(0));
        const [from, to] = JSON.parse(b.subarray(8, 8 + n))[process.argv[2]].data_offsets;
        for (let i = from; i < to; i += 4) console.log(b.readFloatLE(8 + n + i));' "$data/hf/$1/expected.safetensors" "$2"
}
agrees() {
    paste -d' ' <(tr -s '][,:{}a-z"' '\n' <"$out" | grep .) <(reference "$1" "$2") |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 1e-4) bad = 1 } END { exit bad || NR == 0 }' ||
        fail "logits of $1 differ from the reference"
}
for model in vit-tiny lstm-anomaly; do
    expect 0 '^\{"logits":\[\[.*\],\[.*\]\]\}$' logits "$data/hf/$model" \
        --input "$data/hf/$model/expected.safetensors" --json
    command -v node >/dev/null && agrees $model logits
done
expect 0 '^position 0: best id ' logits "$data/hf/whisper" --input "$data/hf/whisper/expected.safetensors" --decoder-ids 0,242
expect 1 'none of the tensors px' logits "$data/hf/whisper" --input "$intent/model.safetensors" --decoder-ids 0
expect 2 'reads tokens' logits "$llama" --input "$data/hf/vit-tiny/expected.safetensors"
expect 1 'fill-mask' fill-mask "$intent" "a [MASK] day"
# What answers there is no Shoal: a proxy whose server is gone, or one that sends clients elsewhere.
cat >"$work/proxy.py" <<'END'
import http.server
class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        status, text = (302, b"") if self.path == "/v1/nodes" else (502, b"<html>Bad Gateway</html>")
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
print(f"http://127.0.0.1:{s.server_port}", flush=True)
s.serve_forever()
END
python3 "$work/proxy.py" >"$work/at" &
server=$!
for _ in $(seq 200); do [ -s "$work/at" ] && break; sleep 0.05; done
expect 1 'answers 502 without a reason' ps --server "$(cat "$work/at")"
expect 1 'answers 302 without a reason' nodes --server "$(cat "$work/at")"
kill $server
server=
echo "$n forms hold"
