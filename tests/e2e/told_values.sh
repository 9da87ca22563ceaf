#!/usr/bin/env bash
# What people are told: sampling values that are left out, the numbers of aliases, changed sections, a reply that was cut, the name
# that is used for a model, and TEI's name for a reranker's documents.
source "$(dirname "$0")/lib.sh"
cp -rL tests/data/hf/llama-gqa "$work/author"
chmod -R u+w "$work/author"
echo '{"temperature": 5, "top_k": -1, "top_p": 0.7, "min_p": -1, "eos_token_id": 2}' >"$work/author/generation_config.json"
said=$("$SHOAL_BIN" models inspect "$work/author") || fail "inspect: $said"
grep -q 'notice.*left out: temperature is 5; it must be from 0 to 2; min_p is -1' <<<"$said" || fail "the notice: $said"
grep -q 'sampling *top_k=0,top_p=0.7$' <<<"$said" || fail "what is left of the sampling: $said"

cat >"$work/c.yaml" <<END
manifest: $PWD/models/models.json
models:
  - name: wrote
    path: $work/author
  - {name: home-chat-s, kv_mb: 32}
  - {name: ears, path: $PWD/tests/data/hf/whisper}
  - {name: ranker, path: $PWD/tests/data/hf/cross-encoder-rerank}
aliases: {gpt: wrote}
END
start_shoal "$work/c.yaml"
"$SHOAL_BIN" show wrote --server "$url" >"$work/out" 2>&1 || fail "show: $(cat "$work/out")"
grep -q '^sampling *top_k 0, top_p 0.7$' "$work/out" || fail "show has no sampling: $(cat "$work/out")"
said=$(curl -sS "$url/v1/models")
[ "$(grep -o '"top_p":0.7[,}]' <<<"$said" | wc -l)" = 2 ] || fail "an alias shows other numbers than its model: $said"
curl -sS "$url/v1/models/gpt" | grep -q '"top_p":0.7[,}]' || fail "the alias alone: $(curl -sS "$url/v1/models/gpt")"

# A short section that comes is told in full.
sed -i "s|^    path: .*author|&\n    sampling: {temperature: 0.3}|" "$work/c.yaml"
kill -HUP "$server"
for _ in $(seq 400); do grep -q 'key=models\[wrote\].sampling' "$log" && break; sleep 0.05; done
grep -qF 'key=models[wrote].sampling from="" to="{\"temperature\":0.3}"' "$log" || fail "the log of the change: $(grep sampling "$log")"

# A reply that was cut says so, on standard error and in JSON, from a server and in this process.
"$SHOAL_BIN" run --help | grep -q 'longest reply in tokens \[128\]' || fail "the default of -n is not in the help"
for how in "home-chat-s --server $url" "models/home-chat-s.gguf --here" "$work/author --here" "wrote --raw --server $url"; do
    "$SHOAL_BIN" run $how -n 2 --temp 0 "turn on the light and the fan" >"$work/out" 2>"$work/err" </dev/null || fail "run $how: $(cat "$work/err")"
    grep -q 'cut at 2 tokens; -n N allows more' "$work/err" || fail "run $how does not say that it was cut: $(cat "$work/err")"
done
for how in "home-chat-s --server $url" "models/home-chat-s.gguf --here" "$work/author --here"; do
    "$SHOAL_BIN" run $how -n 2 --temp 0 --json "turn on the light and the fan" 2>"$work/err" </dev/null | grep -q '"finish":"length"' || fail "run $how --json has no reason of its end"
done
"$SHOAL_BIN" run home-chat-s --server "$url" --temp 0 "turn on the kitchen light" >"$work/out" 2>"$work/err" </dev/null || fail "run: $(cat "$work/err")"
grep -q 'cut at' "$work/err" && fail "a whole reply is called cut: $(cat "$work/err")"

# The file's name is no name of the model.
python3 - "$work/a.wav" <<'END'
import struct, sys, wave
w = wave.open(sys.argv[1], "wb")
w.setnchannels(1); w.setsampwidth(2); w.setframerate(16000); w.writeframes(struct.pack("<h", 0) * 16000)
END
said=$(curl -sS "$url/v1/audio/transcriptions" -F model=ears -F file=@"$work/a.wav" -F language=xx)
grep -q 'the model does not know the language \\"xx\\"' <<<"$said" || fail "a wrong language: $said"

said=$(curl -sS "$url/rerank" -d '{"model":"ranker","query":"light","texts":["turn on the light","rain"]}')
other=$(curl -sS "$url/rerank" -d '{"model":"ranker","query":"light","documents":["turn on the light","rain"]}')
grep -q '"relevance_score"\|"score"' <<<"$said" || fail "texts of a reranker: $said"
[ "$(grep -oE '"(relevance_)?score":[-0-9.e]+' <<<"$said")" = "$(grep -oE '"(relevance_)?score":[-0-9.e]+' <<<"$other")" ] || fail "texts are not documents: $said, $other"
said=$(curl -sS "$url/rerank" -d '{"model":"ranker","query":"light","texts":["a"],"documents":["b"]}')
grep -q 'another name for' <<<"$said" || fail "both names at once: $said"
stop_shoal
