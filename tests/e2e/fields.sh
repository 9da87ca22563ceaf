#!/usr/bin/env bash
# early: it keeps both cores busy for half a minute.
# long: half a minute of both cores
# Each known field of each endpoint, by each transport, with values of every type: documented answers alone, and the
# same gateway and workers at the end. tests/node/fields.mjs has the rules.
source "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "Node.js is not installed"
export SHOAL_STATE=$work/state
data=$PWD/tests/data
mkdir "$work/store" "$work/refuses"
# A model whose template refuses conversations of two messages: the sentence names its file, and no folder.
ln -s "$PWD"/tests/data/hf/llama-gqa/{model.safetensors,tokenizer.json,config.json} "$work/refuses"
cat >"$work/refuses/chat_template.jinja" <<'J'
{% if messages|length > 1 %}{{ raise_exception("one message at a time") }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}
J
shipped | sed -E "s|^models:|models:\n  - {name: refuses, path: $work/refuses}\n  - {name: translator, path: $data/hf/marian-translate, context: 64}\n  - {name: ranker, path: $data/hf/cross-encoder-rerank}\n  - {name: table, path: $data/forest/reg.json}\n  - {name: look, path: $data/hf/vit-tiny}\n  - {name: hears, path: $data/hf/whisper}|; s|^    kv_mb: .*|    context: 128|; s|^  level: info|  level: error|" >"$work/c.yaml"
cat >>"$work/c.yaml" <<END
moderation: {model: home-intent, safe: [alarm_set, alarm_query], min_score: 0.4}
library: {store: $work/store}
END
start_shoal "$work/c.yaml"
curl -s "$url/v1/collections" -d '{"name":"nothing"}' >/dev/null
said=$(curl -s "$url/v1/chat/completions" -d '{"model":"refuses","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}')
grep -q 'chat_template.jinja.*one message at a time' <<<"$said" || fail "the template does not refuse: $said"
grep -qF "$work" <<<"$said" && fail "a sentence tells a folder: $said"
workers() { curl -s "$url/readyz" | grep -o '"id":"[^"]*"[^}]*"pid":[0-9]*' | sed -E 's/"id":"([^"]*)".*"pid":/\1 /' | sort; }
before=$(workers)
[ "$(wc -l <<<"$before")" -ge 10 ] || fail "not all workers are there: $before"

SHOAL_URL=$url SHOAL_FOLDERS=$PWD:$work node tests/node/fields.mjs >"$work/fields.log" 2>&1
rc=$?
[ $rc -eq 0 ] || { cat "$work/fields.log"; }
kill -0 "$server" 2>/dev/null || fail "the gateway is gone: $(tail -5 "$work/fields.log")"
[ "$(workers)" = "$before" ] || fail "other workers than before: $(diff <(echo "$before") <(workers))"
[ $rc -eq 0 ] || fail "answers that are not documented"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
tail -1 "$work/fields.log"
