#!/usr/bin/env bash
# Guessed tokens: two models of one file, of which one guesses nothing, say the same; what was guessed is counted.
. "$(dirname "$0")/lib.sh"

cat >"$work/two.yaml" <<EOF
models:
  - {name: guesses, path: $PWD/models/home-chat-s.gguf}
  - {name: plain, path: $PWD/models/home-chat-s.gguf, drafts: off}
EOF
start_shoal "$work/two.yaml"

json="content-type: application/json"
system="You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = off\nfan.attic 'Attic Fan' = on"
ask() { # MODEL TEXT MORE
    curl -sS "$url/v1/chat/completions" -H "$json" -H "cache-control: no-cache" -d "{\"model\":\"$1\",\"max_tokens\":60,\"logprobs\":true,
        \"messages\":[{\"role\":\"system\",\"content\":\"$system\"},{\"role\":\"user\",\"content\":\"$2\"}]$3}"
}
said() { # all but the ids of calls
    python3 -c 'import json,re,sys; print(re.sub("call_[0-9a-f]*", "", json.dumps(json.load(sys.stdin)["choices"], sort_keys=True)))'
}
accepted() {
    python3 -c 'import json,sys
print(json.load(sys.stdin)["usage"].get("completion_tokens_details", {}).get("accepted_prediction_tokens", 0))'
}

total=0
for round in 1 2 3; do
    for text in "Turn on the kitchen light." "Turn off the attic fan." "Is the attic fan on?"; do
        for more in ',"temperature":0' ',"temperature":0.8,"seed":7' ',"temperature":0,"stop":["Light"]' \
            ',"temperature":0,"response_format":{"type":"json_object"}'; do
            a=$(ask guesses "$text" "$more") b=$(ask plain "$text" "$more")
            [ "$(said <<<"$a")" = "$(said <<<"$b")" ] || fail "round $round: guessing made of $text $more: $a instead of $b"
            [ "$(accepted <<<"$b")" = 0 ] || fail "drafts: off, and yet: $b"
            total=$((total + $(accepted <<<"$a")))
        done
    done
done
[ "$total" -gt 0 ] || fail "no guess came true in 36 replies"

metrics=$(curl -sS "$url/metrics")
counted=$(awk '/^shoal_draft_tokens_total{model="guesses",result="accepted"}/ { print $2 }' <<<"$metrics")
[ "$counted" = "$total" ] || fail "usage says $total, the metrics $counted"
grep -q '^shoal_draft_tokens_total{model="plain"' <<<"$metrics" && fail "a model that guesses nothing counts guesses"

complete() {
    curl -sS "$url/completion" -H "$json" -H "cache-control: no-cache" \
        -d "{\"model\":\"$1\",\"temperature\":0,\"n_predict\":40,\"prompt\":\"on off on off on off on off on\"}"
}
a=$(complete guesses) b=$(complete plain)
python3 - "$a" "$b" <<'EOF' || fail "$a and $b"
import json, sys
a, b = (json.loads(x) for x in sys.argv[1:])
t = a["timings"]
sys.exit(a["content"] != b["content"] or "draft_n" in b["timings"] or t.get("draft_n", 0) < t.get("draft_n_accepted", 0))
EOF
stop_shoal
[ "$stopped" = 0 ] || fail "the server ended with $stopped"
