# lib.sh: start and stop a Shoal for the end-to-end tests. Source it; it is no test itself.
#
#   start_shoal [CONFIG] [ARGS...]   sets $url, $port, $server (pid), $log; ready when it returns
#   gateway                          prints the pid of the gateway, which the process $server supervises
#   stop_shoal                       SIGTERM, waits, keeps the exit status in $stopped
#   start_stream                     a reply of home-chat-m comes into $work/stream, and is not whole yet; its pid is $stream
#   free_port [N]                    prints a port where somebody else's server may listen, and be started again; N, 1 to
#                                    7, for another one
#   npm_clients [SCRIPT...]          npm's clients in $modules, and with them these scripts of tests/node; skips without
#   $ggufs                           the folder of the GGUF fixtures, which the target gguf_fixtures makes
# No pipefail: in `curl ... | grep -q`, grep leaves at its first match and curl may die of it.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
SHOAL_BIN=${SHOAL_BIN:-$PWD/build/shoal}
ggufs=$(dirname "$SHOAL_BIN")/tests/gguf
export SHOAL_LOG=pairs # logs of key=value, which are easily searched
work=$(mktemp -d) || exit 1
server=
log=$work/server.log

skip() { echo "$*"; exit 77; }
fail() { echo "FAILED: $*"; [ -s "$log" ] && grep -E 'level=(warn|error)' "$log" | tail -20; exit 1; }

start_shoal() {
    local config=${1:-shoal.yaml}
    [ $# -gt 0 ] && shift
    : >"$work/ready"
    "$SHOAL_BIN" serve -c "$config" --port 0 "$@" >"$work/ready" 2>"$log" &
    server=$!
    for _ in $(seq 400); do
        url=$(grep -o 'https\?://[0-9.]*:[0-9]*' "$work/ready" | head -1)
        [ -n "$url" ] && break
        kill -0 "$server" 2>/dev/null || fail "the server exited while starting: $(tail -n 2 "$log")"
        sleep 0.05
    done
    [ -n "${url:-}" ] || fail "the server was not ready in 20 s"
    port=${url##*:}
}

gateway() { pgrep -P "$server" -x shoal-gateway; }

start_stream() {
    for _ in $(seq 10); do # again, where it was quicker
        : >"$work/stream"
        curl -sN -m 60 "$url/v1/chat/completions" -H 'cache-control: no-store' -d '{"model":"home-chat-m","stream":true,"temperature":1,"seed":5,"ignore_eos":true,"max_tokens":900,"messages":[{"role":"user","content":"tell me everything"}]}' >"$work/stream" &
        stream=$!
        for _ in $(seq 2000); do grep -q content "$work/stream" && break; sleep 0.01; done
        grep -q content "$work/stream" || fail "no stream has begun: $(cat "$work/stream")"
        grep -q 'data: \[DONE\]' "$work/stream" || return
        wait "$stream"
    done
    fail "each stream was over at once"
}

# Below the ports that the system gives to connections (ip_local_port_range): nobody takes it in between.
free_port() {
    local p=$((12000 + $$ * 8 % 20000 + ${1:-0}))
    while (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null; do p=$((p + 8)); done
    echo "$p"
}

# shipped: the shipped configuration on standard output, fit to stand in any folder.
shipped() { sed -E "s#: (models|lexicons)/#: $PWD/\1/#" shoal.yaml; }

stop_shoal() {
    [ -n "$server" ] || return 0
    kill "$server" 2>/dev/null
    wait "$server"
    stopped=$?
    server=
}

# end PID...: those of them that still are this script's. The number of one that was waited for may be somebody else's.
end() {
    local pid
    for pid in "$@"; do
        jobs -p | grep -qx "$pid" || continue
        kill -9 "$pid"
        wait "$pid"
    done 2>/dev/null
}

cleanup() {
    [ -n "$server" ] && { kill -9 "$server"; wait "$server"; } 2>/dev/null # bash says "Killed" of one that is not waited for
    rm -rf "$work"
}
trap cleanup EXIT

# Whoever comes first installs, and the others wait. package.json is put there last: it says that the rest is there.
# A script that another test reads just now is not written over: it gets a new file in its place, if it is another one.
npm_clients() {
    modules=$PWD/build/node
    command -v node >/dev/null && command -v npm >/dev/null || skip "Node.js is not installed"
    mkdir -p "$modules"
    (
        flock 9
        cmp -s tests/node/package.json "$modules/package.json" && exit
        rm -f "$modules/package.json"
        npm install --prefix "$modules" --no-package-lock --no-audit --no-fund --silent --no-save \
            $(node -p 'Object.entries(require("./tests/node/package.json").dependencies).map(([n, v]) => `${n}@${v}`).join(" ")') \
            >"$work/npm.log" 2>&1 && cp tests/node/package.json "$modules/"
    ) 9>"$modules/.lock" || skip "npm could not install the clients: $(tail -1 "$work/npm.log")"
    # shellcheck disable=SC2068 # patterns are of names there
    (
        cd tests/node || exit
        for script in $@; do
            cmp -s "$script" "$modules/$script" && continue
            cp "$script" "$modules/$script.$$" && mv "$modules/$script.$$" "$modules/$script" || exit
        done
    ) || fail "the clients' scripts cannot be copied into $modules"
}

[ -x "$SHOAL_BIN" ] || skip "$SHOAL_BIN is not built"
[ -f models/models.json ] || skip "the bundled models are not there"
