#!/usr/bin/env bash
# SIGHUP: the file is read again while streams run; what changed counts from then on, what cannot is named, and a
# file with a mistake changes nothing.
source "$(dirname "$0")/lib.sh"
conf=$work/site/shoal.yaml
mkdir "$work/site"
key=$(printf %s sk-first | sha256sum | cut -d' ' -f1)
shipped | sed -e 's/^drain_ms:.*/drain_ms: 5000/' -e 's/^deadline_ms:.*/deadline_ms: 300000/' >"$conf"
cp lexicons/home.yaml "$work/site/words.yaml"
sed -i "s|$PWD/lexicons/home.yaml|$work/site/words.yaml|" "$conf"
cp "$conf" "$work/first.yaml"
start_shoal "$conf"

n_done() { grep -cE 'event=(reloaded|reload_refused)' "$log"; }
# hup: SIGHUP, and until the log says what came of it; its lines are in $work/said.
hup() {
    local before n_lines
    before=$(n_done)
    n_lines=$(wc -l <"$log")
    kill -HUP "$server"
    for _ in $(seq 400); do
        [ "$(n_done)" -gt "$before" ] && break
        sleep 0.02
    done
    tail -n +$((n_lines + 1)) "$log" | grep component=serve >"$work/said"
    [ -s "$work/said" ] || fail "a SIGHUP was not heard"
}
said() { grep -qE "$1" "$work/said" || fail "no '$1' in: $(cat "$work/said")"; }
status() { curl -s -m 20 -o "$work/body" -w '%{http_code}' "$@"; }
chat='{"model":"home-chat-m","max_tokens":8,"messages":[{"role":"user","content":"hello"}]}'
light='{"pipeline":"home","input":"turn on the kitchen light"}'

hup
said 'event=reloaded .*changed=0 left=0'

# Kept answers stay good, until something that they depend on is another.
kept() { curl -s -m 20 -o "$work/body" -D - "$url/v1/process" -d "$light" | grep -i '^x-shoal-cache' | tr -d '\r' | cut -d' ' -f2; }
kept >/dev/null
[ "$(kept)" = hit ] || fail "the second answer is no hit"
sed -i 's/^drain_ms:.*/drain_ms: 5001/' "$conf"
hup
said 'key=drain_ms from=5000 to=5001'
[ "$(kept)" = hit ] || fail "drain_ms cleared the cache"
echo '# another' >>"$work/site/words.yaml"
hup
said 'changed=0'
[ "$(kept)" = miss ] || fail "another lexicon, and the old answer: $(kept)"
cp "$work/first.yaml" "$conf"
hup

# Streams that run, and a connection that stays, on either side of a reload that changes nearly all.
exec 7<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n' >&7
read -r -t 10 line <&7 && [[ $line == *200* ]] || fail "the first answer of the connection: $line"
while read -r -t 10 line <&7 && [ "$line" != $'\r' ]; do :; done
read -r -n 15 -t 10 line <&7
pids=()
for i in 1 2 3 4; do
    curl -sN -m 280 "$url/v1/chat/completions" -o "$work/stream.$i" -d "{\"model\":\"auto\",\"stream\":true,\"temperature\":1,\"seed\":$i,\"ignore_eos\":true,\"max_tokens\":300,\"messages\":[{\"role\":\"user\",\"content\":\"tell me everything, number $i\"}]}" &
    pids+=($!)
done
for i in 1 2 3 4; do
    for _ in $(seq 400); do
        grep -q content "$work/stream.$i" 2>/dev/null && break
        sleep 0.01
    done
done
[ "$(status "$url/v1/process" -d "$light")" = 200 ] || fail "$(cat "$work/body")"
cp "$work/body" "$work/before"
sed -i -e "s/^drain_ms:.*/drain_ms: 4000/" \
    -e 's/^  - name: home$/  - name: house/' \
    -e 's/^  - name: auto$/  - name: any/' \
    -e "s/^listen:.*/listen: 127.0.0.1:1/" "$conf"
sed -i -e '/name: home-slots/a\    cost: 2.5' -e '/name: home-intent/a\    replicas: 2' "$conf"
cat >>"$conf" <<END
api_keys:
  - {name: first, sha256: $key, limits: {requests_per_minute: 1000}}
failover_wait_ms: 777
END
hup
said 'event=changed key=drain_ms from=5000 to=4000'
said 'event=changed key="?api_keys\[first\]"?'
said 'event=changed key="?pipelines\[home\]"?'
said 'event=changed key="?pipelines\[house\]"?'
said 'event=changed key="?models\[home-slots\].cost"? from="" to=2.5'
said 'event=left key=failover_wait_ms from=30000 to=777 needs="a restart"'
said 'event=changed key="?models\[home-intent\].replicas"? .*to=2'
said 'event=reloaded '
grep -q "$key" "$work/said" && fail "a digest stands in the log"
printf 'GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n' >&7
grep -q '200 OK' <(timeout 10 cat <&7) || fail "the connection did not outlive the reload"
exec 7<&-
for pid in "${pids[@]}"; do wait "$pid" || fail "a stream broke: $(tail -c 300 "$work"/stream.*)"; done
for i in 1 2 3 4; do
    grep -q 'data: \[DONE\]' "$work/stream.$i" || fail "stream $i has no end: $(tail -c 300 "$work/stream.$i")"
    grep -q '"error"' "$work/stream.$i" && fail "stream $i: $(grep error "$work/stream.$i")"
done
echo "four streams and a connection across a reload"

[ "$(status "$url/v1/chat/completions" -d "$chat")" = 401 ] || fail "the key is not asked for: $(cat "$work/body")"
auth=(-H 'authorization: Bearer sk-first')
[ "$(status "${auth[@]}" "$url/v1/chat/completions" -d "$chat")" = 200 ] || fail "the new key: $(cat "$work/body")"
[ "$(status "${auth[@]}" "$url/v1/process" -d "$light")" = 404 ] || fail "a pipeline that went: $(cat "$work/body")"
[ "$(status "${auth[@]}" "$url/v1/process" -d "${light/home/house}")" = 200 ] || fail "a pipeline that came: $(cat "$work/body")"
[ "$(status "${auth[@]}" "$url/v1/chat/completions" -d "${chat/home-chat-m/any}")" = 200 ] || fail "a route that came: $(cat "$work/body")"

# What is wrong changes nothing, and says where.
cp "$conf" "$work/good.yaml"
refused() { # PATTERN
    hup
    said "event=reload_refused reason=.*$1.* so=\"nothing has changed\""
    [ "$(status "$url/v1/models")" = 401 ] || fail "a refused file opened the door"
    [ "$(status "${auth[@]}" "$url/v1/models")" = 200 ] || fail "a refused file shut the door"
}
echo 'colour: red' >>"$conf"
refused "shoal.yaml:$(wc -l <"$conf"): there is no key 'colour'"
sed -e 's/model: home-slots/model: home-embed/' "$work/good.yaml" >"$conf"
refused 'shoal.yaml:[0-9]+: .*home-embed'
sed -e 's/limits: {requests_per_minute: 1000}/endpoints: [nowhere]/' "$work/good.yaml" >"$conf"
refused "there is no endpoint 'nowhere'"
: >"$conf"
refused 'shoal.yaml'
rm "$conf"
refused 'No such file'
mkdir "$conf"
refused 'Is a directory'
rmdir "$conf"
head -c 3000 /dev/urandom >"$conf"
refused 'shoal.yaml'
echo "seven wrong files, nothing changed"

# A storm of them under load: every request is answered, and the last file counts.
cp "$work/good.yaml" "$conf"
for i in 1 2 3; do
    (for _ in $(seq 40); do
        got=$(curl -s -m 20 -o "$work/load.$i" -w '%{http_code}' "${auth[@]}" "$url/v1/process" -d "${light/home/house}")
        [ "$got" = 200 ] || { echo "$got $(cat "$work/load.$i")" >>"$work/lost"; }
    done) &
    pids[i]=$!
done
for i in $(seq 60); do
    sed "s/^drain_ms:.*/drain_ms: $((2000 + i))/" "$work/good.yaml" >"$conf.new"
    mv "$conf.new" "$conf"
    kill -HUP "$server"
    sleep 0.02
done
for i in 1 2 3; do wait "${pids[i]}"; done
for _ in $(seq 60); do # until the last of them is done
    quiet=$(n_done)
    sleep 1
    [ "$(n_done)" = "$quiet" ] && break
done
[ -s "$work/lost" ] && fail "requests that were not answered: $(head -3 "$work/lost")"
hup
grep -q 'event=changed key=drain_ms .*to=2060' "$log" || fail "the last file does not count: $(cat "$work/said")"

# Back to where it began: the door is open again.
cp "$work/first.yaml" "$conf"
hup
said 'event=reloaded .*left=0'
[ "$(status "$url/v1/process" -d "$light")" = 200 ] || fail "$(cat "$work/body")"
same() { sed -E 's/"(id|ms|[a-z_]*_ms)":("[^"]*"|[0-9.]+)//g' "$1" | grep -o '"text":"[^"]*"'; }
[ "$(same "$work/body")" = "$(same "$work/before")" ] || fail "another answer: $(cat "$work/body")"

# Certificates: a new one in the old one's place.
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
cert() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -keyout "$work/site/key.pem" -out "$work/site/cert.pem" 2>/dev/null; }
subject() { openssl s_client -connect "127.0.0.1:$port" </dev/null 2>/dev/null | openssl x509 -noout -subject 2>/dev/null; }
if command -v openssl >/dev/null; then
    cert before
    { cat "$work/first.yaml"; echo 'tls: {cert: cert.pem, key: key.pem}'; } >"$conf"
    start_shoal "$conf"
    subject | grep -q before || fail "no certificate: $(subject)"
    cert after
    hup
    subject | grep -q after || fail "still the old certificate: $(subject)"
    echo nonsense >"$work/site/cert.pem"
    hup
    said 'event=reload_refused'
    subject | grep -q after || fail "a broken certificate was taken"
    stop_shoal
fi
echo "reloaded, refused, stormed: nothing lost"
