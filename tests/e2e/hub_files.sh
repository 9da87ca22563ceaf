#!/usr/bin/env bash
# Folders as hubs and Python leave them: Git LFS pointers and web pages are named, NaN and Infinity are read, a model of text without
# its tokenizer is refused when it loads.
source "$(dirname "$0")/lib.sh"
# folder NAME FROM: a copy of tests/data/hf/FROM in $work/NAME
folder() { cp -rL "tests/data/hf/$2" "$work/$1" && chmod -R u+w "$work/$1"; }
# refused TEXT ARGS...: the command fails and says TEXT
refused() {
    local text=$1 said
    shift
    said=$("$SHOAL_BIN" "$@" 2>&1 </dev/null) && fail "shoal $* succeeds: $said"
    grep -qF "$text" <<<"$said" || fail "shoal $* does not say '$text': $said"
}
pointer=$'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n'
printf '%s' "$pointer" >"$work/m.gguf"
refused "m.gguf: is a Git LFS pointer, not the file: run git lfs pull" models inspect "$work/m.gguf"
printf '<!DOCTYPE html>\n<html lang="en"><body>Log in</body></html>\n' >"$work/page.gguf"
refused "page.gguf: is an HTML page" models inspect "$work/page.gguf"
for file in model.safetensors tokenizer.json config.json generation_config.json tokenizer_config.json; do
    folder "lfs-$file" llama-bf16
    printf '%s' "$pointer" >"$work/lfs-$file/$file"
    refused "$file: is a Git LFS pointer" models inspect "$work/lfs-$file"
done

# Python's numbers, a byte order mark, and more ends than most models have.
folder python llama-bf16
python3 - "$work/python" <<'END' || fail "edit the folder"
import json, sys
for name, more in (("config.json", {"time_step_limit": [0.0, float("inf")], "x": float("nan"), "y": -float("inf")}),
                   ("generation_config.json", {"eos_token_id": list(range(17)), "guidance": float("nan")}),
                   ("tokenizer_config.json", {"model_max_length": float("inf")})):
    path = sys.argv[1] + "/" + name
    text = json.dumps({**json.load(open(path)), **more})
    open(path, "w", encoding="utf-8-sig").write(text)
END
"$SHOAL_BIN" models inspect "$work/python" >"$work/out" 2>&1 || fail "Python's JSON: $(cat "$work/out")"
"$SHOAL_BIN" run "$work/python" -n 3 hello >/dev/null 2>"$work/out" </dev/null || fail "Python's JSON: $(cat "$work/out")"
"$SHOAL_BIN" quantize "$work/python" "$work/python.gguf" >"$work/out" 2>&1 || fail "quantize: $(cat "$work/out")"
"$SHOAL_BIN" models inspect "$work/python.gguf" >"$work/out" 2>&1 || fail "its GGUF file: $(cat "$work/out")"
folder ears whisper
python3 - "$work/ears/preprocessor_config.json" <<'END' || fail "edit the folder"
import json, sys
open(sys.argv[1], "w").write(json.dumps({"feature_extractor_type": "WhisperFeatureExtractor", "padding_value": float("nan")}))
END
"$SHOAL_BIN" models inspect "$work/ears" >"$work/out" 2>&1 || fail "preprocessor_config.json: $(cat "$work/out")"

# Without a tokenizer a model that reads texts is refused; one that generates takes token ids, and says so.
folder notok-embed minilm-embed
folder notok llama-bf16
rm "$work"/notok*/tokenizer*.json
said=$("$SHOAL_BIN" models inspect "$work/notok-embed" 2>&1)
grep -q 'verdict.*it reads text, but there is no tokenizer.json' <<<"$said" || fail "the verdict on an embedder without a tokenizer: $said"
said=$("$SHOAL_BIN" models inspect "$work/notok" 2>&1) || fail "inspect notok: $said"
grep -q 'notice.*takes token ids and no text: there is no tokenizer.json' <<<"$said" || fail "the notice: $said"
grep -q 'verdict.*it runs here for requests of token ids' <<<"$said" || fail "the verdict: $said"
printf 'models:\n  - {name: e, path: %s}\n' "$work/notok-embed" >"$work/c.yaml"
refused "c.yaml:2: models[0]" serve --check -c "$work/c.yaml"
refused "it reads text, but there is no tokenizer.json" serve --check -c "$work/c.yaml"
printf 'models:\n  - {name: notok, path: %s}\n' "$work/notok" >"$work/c.yaml"
start_shoal "$work/c.yaml"
said=$(curl -sS "$url/v1/completions" -d '{"model":"notok","prompt":"hi","max_tokens":2}')
grep -q '"notok: there is no tokenizer.json' <<<"$said" || fail "a text for a model without a tokenizer: $said"
said=$(curl -sS "$url/v1/completions" -d '{"model":"notok","prompt":[5,6,7],"max_tokens":2}')
grep -q '"finish_reason"' <<<"$said" || fail "token ids for a model without a tokenizer: $said"
grep -q 'event=model_notice.*takes token ids' "$log" || fail "the log does not say that it takes token ids alone"
stop_shoal

# A context that the model was not made for is refused with its place, of encoders as well.
for m in "llama-bf16 256" "minilm-embed 128"; do
    printf 'models:\n  - name: m\n    path: %s\n    context: 100000\n' "$PWD/tests/data/hf/${m% *}" >"$work/c.yaml"
    refused "c.yaml:4: models[0].context: the model was made for ${m#* } tokens, so its context cannot be 100000" serve --check -c "$work/c.yaml"
done
