#!/usr/bin/env bash
# Routes by cost and energy: who is over a rule's or a request's budget is not asked, and the reason says so; of models that
# are as good the cheapest or the thriftiest is; estimates are in `explain`; what was spent is counted; energy is what the
# configuration says, or the machine's counters, or processor time.
source "$(dirname "$0")/lib.sh"
config() { # LINES BEHIND THE MODELS, MODEL FIELDS
    cat >"$work/shoal.yaml" <<CONFIG
cache: {mb: 0}
manifest: $PWD/models/models.json
models:
  - {name: home-chat-s, cost: 1${2:-, energy_j: 0.01}}
  - {name: home-chat-m, cost: 4${2:-, energy_j: 0.05}}
routes:
  - {name: cheap, order: least_cost, rules: [{any: [home-chat-m, home-chat-s]}]}
  - {name: green, order: least_energy, rules: [{any: [home-chat-m, home-chat-s]}]}
  - {name: best, rules: [{name: small-change, max_cost: 0.5, model: home-chat-m}], fallback: [home-chat-s]}
$1
CONFIG
}
ask() { # ROUTE MAX_TOKENS CURL_ARGS...
    curl -s -m 30 -D "$work/head" "${@:3}" "$url/v1/chat/completions" -d '{"model":"'"$1"'","temperature":0,"max_tokens":'"$2"',"messages":[{"role":"user","content":"hello there"}]}'
}
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }
who() { field "$(ask "$@")" 'd["model"]'; }
code() { field "$(ask "$@")" 'd["error"]["code"]'; }
metric() { sleep 1.1; curl -s "$url/metrics" | grep -F "$1" | awk '{ print $2 }'; }

config ''
start_shoal "$work/shoal.yaml"
want "$(who cheap 8)" home-chat-s "the cheapest"
want "$(who green 8)" home-chat-s "the thriftiest"
want "$(who best 100)" home-chat-m "within the rule's budget"
want "$(who best 400)" home-chat-s "over the rule's budget"
grep -q '^x-shoal-route: best; home-chat-s (fallback 1)' "$work/head" || fail "the header: $(cat "$work/head")"
want "$(who best 100 -H 'x-shoal-max-energy-j: 2')" home-chat-s "over the request's joules"
want "$(who best 100 -H 'x-shoal-max-cost: 0.2')" home-chat-s "over the request's cost"
want "$(code best 100 -H 'x-shoal-max-cost: 0.01')" route_has_nobody "nobody is so cheap"
field "$(ask best 100 -H 'x-shoal-max-cost: 0.01')" 'd["error"]["message"]' | grep -q 'home-chat-s is over the budget: it would take about 0.1.* of cost, and 0.01 are allowed' ||
    fail "why nobody is: $(ask best 100 -H 'x-shoal-max-cost: 0.01')"
for bad in 0 -1 nan inf 1e400 x ''; do
    got=$(ask best 8 -H "x-shoal-max-cost;" -H "x-shoal-max-energy-j: $bad")
    [ -z "$bad" ] && continue # curl leaves it out
    want "$(field "$got" 'd["error"]["type"]')" invalid_request_error "x-shoal-max-energy-j: $bad"
done
want "$(field "$(ask home-chat-s 8 -H 'x-shoal-max-cost: 5')" 'd["error"]["param"]')" model "a budget without a route"

explain() { "$SHOAL_BIN" route explain "hello there" --server "$url" "$@"; }
got=$(explain --route best --json --max-energy-j 0.3)
want "$(field "$got" '[(s["model"], s["reason"], s["energy_by"]) for s in d["skipped"]]')" "[('home-chat-m', 'over_budget', 'configured')]" "explained"
want "$(field "$got" 'd["steps"][0]["model"], d["steps"][0]["energy_j"] <= 0.3, d["steps"][0]["cost"] > 0')" "('home-chat-s', True, True)" "the estimate"
explain --route green | grep -q 'asks .*home-chat-s .*; costs about .*; takes about .* J (configured)' || fail "in words: $(explain --route green)"
cost=$(metric 'shoal_cost_total{model="home-chat-m",route="best"}')
[ -n "$cost" ] && [ "$cost" != 0 ] || fail "nothing is counted: $(curl -s "$url/metrics" | grep shoal_cost)"
[ -n "$(metric 'shoal_energy_joules_total{model="home-chat-s",route="green",by="configured"}')" ] || fail "no joules are counted"
stop_shoal
"$SHOAL_BIN" route explain "hello there" -c "$work/shoal.yaml" --route best --json --max-cost 0.3 >"$work/out" 2>/dev/null || fail "explain without a server"
want "$(field "$(cat "$work/out")" '[s["model"] for s in d["steps"]]')" "['home-chat-s']" "decided without a server"
grep -a 'event=decision' "$log" >"$work/decisions"
"$SHOAL_BIN" route replay "$work/decisions" -c "$work/shoal.yaml" | tail -1 | grep -q ', 0 come out otherwise$' || fail "decisions with budgets are not made again alike"

# Nobody says what energy is: by processor time, then by counters like the kernel's, once there are tokens to go by.
measured() { # BY
    start_shoal "$work/shoal.yaml"
    for _ in 1 2 3 4 5 6 7 8; do
        ask home-chat-s 160 >/dev/null
        [ -d "$work/rapl" ] && echo $(($(cat "$work/rapl/intel-rapl:0/energy_uj") + 9000000)) >"$work/rapl/intel-rapl:0/energy_uj"
        sleep 0.4
    done
    for _ in $(seq 60); do
        got=$(explain --route green --json)
        [ "$(field "$got" 'next((s.get("energy_by","") for s in d["steps"] if s["model"]=="home-chat-s"), "")')" = "$1" ] && break
        ask home-chat-s 160 >/dev/null
        [ -d "$work/rapl" ] && echo $(($(cat "$work/rapl/intel-rapl:0/energy_uj") + 9000000)) >"$work/rapl/intel-rapl:0/energy_uj"
        sleep 0.2
    done
    want "$(field "$got" 'd["steps"][0]["model"], d["steps"][0].get("energy_by")')" "('home-chat-s', '$1')" "who tells its energy comes first"
    [ "$(metric 'shoal_worker_cpu_seconds_total{model="home-chat-s"' | head -1)" != 0 ] || fail "no processor time is told"
    stop_shoal
}
config 'watts_per_core: 6' ' '
SHOAL_POWERCAP=/nowhere measured cpu_time
mkdir -p "$work/rapl/intel-rapl:0"
echo 1000000 >"$work/rapl/intel-rapl:0/energy_uj"
echo 262143328850 >"$work/rapl/intel-rapl:0/max_energy_range_uj"
SHOAL_POWERCAP=$work/rapl measured rapl
want "$stopped" 0 "the end"
echo "budgets hold, and what was spent is counted"
