# machines.bash: a gateway and other machines, which join it, for the end-to-end tests. Source it; it sources lib.sh.
#
#   make_ca                      the gateway's state folder is $gw from now on, and it is to listen at $control
#   start_agent NAME [ARGS...]   the machine's agent, whose pid is ${agents[NAME]}; its log is $work/NAME.log
#   join NAME [ARGS...]          the same, with a token of its own
#   end_agent NAME               kill -9 for the agent and its workers; its state folder stays
#   until_true WHAT COMMAND...   until it succeeds, for a minute or more; else the test fails with what `clues` prints
#
# Agents, and the processes in the array `asking`, are ended with the script.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
declare -A agents=()
asking=()
gw=$work/gw

end_all() {
    end "${asking[@]}" "${agents[@]}"
    cleanup
}
trap end_all EXIT

# A script may say more.
clues() { echo "$(curl -s "$url/readyz"); $(tail -q -n 5 "$work"/*.log)"; }

until_true() {
    local what=$1
    shift
    for _ in $(seq 1200); do
        "$@" && return 0
        sleep 0.05
    done
    fail "$what: never came to pass: $(clues)"
}

make_ca() {
    "$SHOAL_BIN" ca init --state "$gw" >/dev/null || fail "no CA"
    control=127.0.0.1:$(free_port)
}

start_agent() {
    "$SHOAL_BIN" agent --state "$work/$1" --no-measure -l 127.0.0.1:0 "${@:2}" >"$work/$1.out" 2>>"$work/$1.log" &
    agents[$1]=$!
}

join() { start_agent "$1" --join "$control" --token "$("$SHOAL_BIN" token create --state "$gw")" --name "$1" "${@:2}"; }

end_agent() {
    kill -9 "${agents[$1]}" $(pgrep -P "${agents[$1]}")
    wait "${agents[$1]}" 2>/dev/null
    unset "agents[$1]"
}
