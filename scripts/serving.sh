# serving.sh: start and stop a home cluster for the other scripts. Source it; it runs nothing itself.
#
#   serving_start CONFIG   sets $server (pid) and $url when the cluster is ready; else says why and fails
#   serving_stop           SIGTERM, and waits
# Set $bin to the program before. $serving_ready holds its standard output, $serving_log its log.
export SHOAL_LOG=pairs # logs of key=value, which are easily searched
serving_log=$(mktemp)
serving_ready=$(mktemp)
server=
url=
trap serving_done EXIT

serving_start() {
    # What an earlier start wrote must not be read as this one's: the child empties the file only later.
    : >"$serving_ready"
    "$bin" serve -c "$1" --port 0 >"$serving_ready" 2>"$serving_log" &
    server=$!
    local give_up=$((SECONDS + 60))
    until url=$(grep -o -m1 'https\?://[0-9.]*:[0-9]*' "$serving_ready"); do
        if [ $SECONDS -gt $give_up ] || ! kill -0 "$server" 2>/dev/null; then
            echo "the cluster did not become ready; its log:" >&2
            cat "$serving_log" >&2
            return 1
        fi
        sleep 0.002
    done
}

serving_stop() {
    kill "$server"
    wait "$server" || true
    server=
}

serving_done() {
    [ -z "$server" ] || { kill "$server"; wait "$server"; } 2>/dev/null || true
    rm -f "$serving_log" "$serving_ready"
}
