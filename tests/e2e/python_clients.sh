#!/usr/bin/env bash
# early: it installs packages and keeps a core busy for half a minute.
# Clients of PyPI, unmodified, against a running home cluster, and whether docs/clients.md says what came of it
# (SHOAL_WRITE_CLIENTS=1 writes it).
# long: packages of PyPI, and a minute of CPU
source "$(dirname "$0")/lib.sh"
venv=$(scripts/python_clients.sh 2>"$work/install") || skip "Python clients: $(tail -1 "$work/install")"
export SHOAL_STATE=$work/state SHOAL_CALLS=$work/calls.json
# The shipped cluster, with a model that hears, and one of random weights that was trained for nothing.
plain=$work/plain
mkdir "$plain"
ln -s "$PWD"/tests/data/hf/llama-gqa/{model.safetensors,tokenizer.json} "$plain"
sed 's/"max_position_embeddings": 256/"max_position_embeddings": 2048/' tests/data/hf/llama-gqa/config.json >"$plain/config.json"
printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}' >"$plain/chat_template.jinja"
shipped | sed "s|^models:|models:\n  - {name: home-ears}\n  - {name: plain, path: $plain}|" >"$work/c.yaml"
cat >>"$work/c.yaml" <<END
moderation: {model: home-intent, safe: [alarm_set, alarm_query], min_score: 0.4}
aliases:
  gpt-4o-mini: home-chat-s
  openai/gpt-4o: home-chat-m
  text-embedding-3-small: home-embed
  whisper-1: home-ears
  llama3.2:1b: home-chat-s
  "llama3:latest": home-chat-s
  nomic-embed-text: home-embed
END
start_shoal "$work/c.yaml"
export SHOAL_URL=$url

# try PATH FILE...: tests/python/FILE.py, with the packages of PATH before those of the environment
try() {
    PYTHONPATH=$1 PYTHONPYCACHEPREFIX=$venv/pycache timeout 280 "$venv/bin/python" tests/python/calls.py "${@:2}" >>"$work/python.log" 2>&1 || failed=1
}
failed=0
try "$venv/openai-1" openai_calls
try '' openai_calls
try "$venv/openai-3" openai_calls
try '' anthropic_calls ollama_calls langchain_calls llamaindex_calls litellm_calls agents_calls hub_calls mcp_calls triton_calls
stop_shoal
if [ $failed -ne 0 ]; then
    grep -vE '^(ok|1\.\.)' "$work/python.log" | head -120
    fail "a client failed"
fi
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
if command -v node >/dev/null; then
    said=$(node tests/node/clients_table.mjs "tests/e2e/$(basename "$0")" "$SHOAL_CALLS" docs/clients.md \
        ${SHOAL_WRITE_CLIENTS:+--write} 2>&1) || {
        echo "$said"
        fail "docs/clients.md is not what the clients saw: SHOAL_WRITE_CLIENTS=1 bash $0"
    }
fi
echo "$(grep -c "^ok" "$work/python.log") calls of $(sed -n "s,^ok [0-9]* - \([^:]*\):.*,\1,p" "$work/python.log" | sort -u | wc -l) clients"
