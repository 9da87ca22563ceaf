#!/bin/sh
# Start a server, ask it one thing, end it: tests/fail/start.sh SHOAL CONFIG. What it answers is printed; a server
# that cannot start says why on standard error, and the exit status is its own.
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$1" serve -c "$2" --port 0 >"$out" 2>"$out.err" &
server=$!
url=
for i in $(seq 500); do
    url=$(grep -o 'http://[0-9.]*:[0-9]*' "$out" | head -1)
    [ -n "$url" ] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.02
done
if [ -n "$url" ]; then
    tests/fail/ask.sh classify "$url"
    kill "$server"
fi
wait "$server"
status=$?
grep -v '^time=.*level=info' "$out.err" >&2
rm -f "$out.err"
exit $status
