#!/usr/bin/env bash
# The longest text of an embedder: sentence-transformers' max_seq_length, truncation where it is asked for, and a context
# of the configuration in its place; the same from a GGUF file that was made of the folder.
source "$(dirname "$0")/lib.sh"
cp -r tests/data/hf/minilm-embed "$work/short"
echo '{"max_seq_length": 16, "do_lower_case": false}' >"$work/short/sentence_bert_config.json"
"$SHOAL_BIN" quantize -t f32 "$work/short" "$work/short.gguf" >/dev/null 2>&1 || fail "quantize"
cat >"$work/shoal.yaml" <<END
models:
  - {name: short, path: $work/short}
  - {name: file, path: $work/short.gguf}
  - {name: long, path: $work/short, context: 64}
END
start_shoal "$work/shoal.yaml"

# embed MODEL FIELDS: status and, on success, tokens and the first values
embed() {
    curl -s -m 30 "$url/v1/embeddings" -d "{\"model\":\"$1\",\"input\":\"$text\"$2}" | python3 -c '
import json, sys
r = json.load(sys.stdin)
print(r["error"]["message"] if "error" in r else "%d %s" % (r["usage"]["prompt_tokens"], r["data"][0]["embedding"][:4]))'
}
text=$(printf 'turn on the light %.0s' 1 2 3 4 5 6 7 8)
for model in short file; do
    [[ $(embed $model "") == *"longer than the context of $model, 16 tokens"*'"truncate": true'* ]] || fail "$model takes it whole: $(embed $model "")"
    cut=$(embed $model ',"truncate":true')
    [[ $cut == 16\ * ]] || fail "$model does not truncate: $cut"
    [ "$cut" = "$(embed $model ',"truncate_prompt_tokens":-1')" ] || fail "$model: -1 is another limit"
    [ "$cut" = "$(embed $model ',"truncate_prompt_tokens":900')" ] || fail "$model: 900 is not the model's limit"
    [[ $(embed $model ',"truncate_prompt_tokens":5') == 5\ * ]] || fail "$model: not five tokens"
done
[ "$(embed short ',"truncate":true')" = "$(embed long ',"truncate_prompt_tokens":16')" ] || fail "other tokens remain"
whole=$(embed long "")
[[ $whole != 16\ * && $whole != *longer* ]] || fail "the configured context does not count: $whole"
stop_shoal
echo "max_seq_length, truncate, truncate_prompt_tokens and context are what they say"
