#!/usr/bin/env bash
# Chats end at the token that the chat template writes behind an assistant's turn, though no list of the file names it: in a
# folder and in a GGUF file, whole and streamed.
source "$(dirname "$0")/lib.sh"
template='{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant {% endif %}'
mkdir "$work/folder"
for f in config.json generation_config.json model.safetensors tokenizer.json; do
    ln -s "$PWD/tests/data/hf/qwen3-qknorm/$f" "$work/folder/$f"
done
printf '%s' "$template" >"$work/folder/chat_template.jinja"
printf '%s' "${template//im_end/endoftext}" >"$work/template.jinja"
"$SHOAL_BIN" edit "$ggufs"/qwen3-qknorm.gguf "$work/file.gguf" --chat-template "$work/template.jinja" >/dev/null || fail "edit"
# its file, what inspect says, the ids
check() {
    "$SHOAL_BIN" models inspect -q "$work/$1" | grep -qF "ends at       $2" || fail "$1: $("$SHOAL_BIN" models inspect -q "$work/$1" | grep '^ends at')"
    "$SHOAL_BIN" models inspect -q --json "$work/$1" | grep -qF "\"end_token_ids\":$3" || fail "$1: inspect --json"
}
check folder '<|endoftext|> (0), <|im_end|> (2, by the chat template)' '[0,2],"template_end_token_id":2'
check file.gguf '<|im_end|> (2), <|endoftext|> (0, by the chat template)' '[2,0],"template_end_token_id":0'
cat >"$work/c.yaml" <<END
models:
  - {name: folder, path: $work/folder}
  - {name: file, path: $work/file.gguf}
END
start_shoal "$work/c.yaml"
for m in folder:2 file:0; do
    end=${m#*:} m=${m%:*}
    ask="\"model\":\"$m\",\"max_tokens\":8,\"logit_bias\":{\"$end\":100},\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
    r=$(curl -sS "$url/v1/chat/completions" -d "{$ask}")
    grep -q '"finish_reason":"stop"' <<<"$r" || fail "$m: $r"
    ! grep -q 'im_end\|endoftext' <<<"$r" || fail "$m shows the marker: $r"
    r=$(curl -sSN "$url/v1/chat/completions" -d "{$ask,\"stream\":true}")
    grep -q '"finish_reason":"stop"' <<<"$r" || fail "$m, streamed: $r"
    r=$(curl -sS "$url/v1/chat/completions" -d "{${ask/\"$end\"/\"5\"}}")
    grep -q '"finish_reason":"length"' <<<"$r" || fail "$m ends at any token: $r"
done
stop_shoal
echo "turns end where the template ends them"
