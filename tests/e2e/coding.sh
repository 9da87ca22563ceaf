#!/usr/bin/env bash
# Bodies packed with gzip, both ways: whole answers and streams, requests and bombs; sound in pieces.
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "there is no python3"
cat >"$work/shoal.yaml" <<EOF
manifest: $PWD/models/models.json
models: [{name: home-ears}, {name: home-intent}, {name: home-chat-s}]
EOF
start_shoal "$work/shoal.yaml"
# head OPTIONS...: the answer's head
head_of() { curl -s -m 20 -o "$work/body" -D - "$@" | tr -d '\r'; }

# ---- answers
plain=$(curl -s -m 20 "$url/openapi.json" | sha256sum)
[ "$(curl -s -m 20 --compressed "$url/openapi.json" | sha256sum)" = "$plain" ] || fail "unpacked it is another answer"
head_of -H 'accept-encoding: gzip' "$url/openapi.json" >"$work/head"
grep -qx 'content-encoding: gzip' "$work/head" && grep -qx 'vary: accept-encoding' "$work/head" || fail "$(cat "$work/head")"
[ "$(gzip -dc "$work/body" | sha256sum)" = "$plain" ] || fail "gzip reads something else"
head_of -H 'accept-encoding: zstd, gzip;q=0.5' "$url/openapi.json" | grep -qx 'content-encoding: zstd' || fail "no zstd"
for no in 'accept: */*' 'accept-encoding: gzip;q=0' 'accept-encoding: br' 'accept-encoding: identity, *;q=0'; do
    head_of -H "$no" "$url/openapi.json" | grep -q content-encoding && fail "packed for '$no'"
done
head_of -H 'accept-encoding: gzip' "$url/healthz" | grep -q content-encoding && fail "a small answer is packed"
head_of -I -H 'accept-encoding: gzip' "$url/openapi.json" | grep -qx 'content-encoding: gzip' || fail "HEAD says another thing"

# ---- streams: asked for by saying that plain is worse, and each event can be read when it comes
chat='{"model":"home-chat-s","messages":[{"role":"user","content":"hi"}],"max_tokens":20,"temperature":0,"stream":true}'
head_of -H 'accept-encoding: gzip, deflate, br' "$url/v1/chat/completions" -d "$chat" | grep -q content-encoding &&
    fail "a stream is packed for whoever takes gzip"
texts() { grep -o '"content":"[^"]*"'; }
said=$(curl -s -m 20 "$url/v1/chat/completions" -d "$chat" | texts)
head_of -H 'accept-encoding: gzip, identity;q=0.5' "$url/v1/chat/completions" -d "$chat" >"$work/head"
grep -qx 'content-encoding: gzip' "$work/head" || fail "the stream is not packed: $(cat "$work/head")"
[ "$(gzip -dc "$work/body" | texts)" = "$said" ] || fail "the packed stream says something else"
python3 - "$url" "$chat" <<'PY' || fail "an event of a packed stream cannot be read before the next"
import http.client, json, sys, urllib.parse, zlib
u = urllib.parse.urlparse(sys.argv[1])
c = http.client.HTTPConnection(u.hostname, u.port, timeout=20)
c.request("POST", "/v1/chat/completions", sys.argv[2], {"accept-encoding": "gzip, identity;q=0"})
r = c.getresponse()
unpack, text, whole = zlib.decompressobj(31), b"", 0
while piece := r.read1():
    text += unpack.decompress(piece)
    assert text.endswith(b"\n\n"), "a piece ends in the middle of an event"
    whole += 1
assert unpack.eof and b"[DONE]" in text and whole > 1, (whole, text[-80:])
PY

# ---- requests
body='{"model":"home-intent","input":"turn on the light","top_k":1}'
ask() { curl -s -m 20 -o "$work/body" -w '%{http_code}' "$url/v1/classify" "$@"; }
ask -d "$body" >/dev/null && cp "$work/body" "$work/plain"
[ "$(gzip -c <<<"$body" | ask -H 'content-encoding: gzip' --data-binary @-)" = 200 ] || fail "gzip: $(cat "$work/body")"
cmp -s "$work/body" "$work/plain" || fail "the packed request is answered $(cat "$work/body")"
gzip -c </dev/null | ask -H 'content-encoding: gzip' --data-binary @- >/dev/null && grep -q 'body is empty, must be JSON' "$work/body" || fail "nothing, packed: $(cat "$work/body")"
[ "$(ask -H 'content-encoding: identity' -d "$body")" = 200 ] || fail "identity: $(cat "$work/body")"
[ "$(curl -s -m 20 -o /dev/null -w '%{http_code}' -H 'content-encoding: br' "$url/healthz")" = 200 ] || fail "br of no body"
[ "$(ask -H 'content-encoding: br' -d "$body")" = 415 ] || fail "br: $(cat "$work/body")"
grep -q 'gzip, deflate or zstd' "$work/body" || fail "br: $(cat "$work/body")"
[ "$(ask -H 'content-encoding: gzip' -d "$body")" = 400 ] || fail "no gzip: $(cat "$work/body")"
[ "$(gzip -c <<<"$body" | head -c 40 | ask -H 'content-encoding: gzip' --data-binary @-)" = 400 ] || fail "cut: $(cat "$work/body")"
[ "$(head -c 300000000 /dev/zero | gzip -1 | ask -H 'content-encoding: gzip' --data-binary @-)" = 413 ] || fail "bomb: $(cat "$work/body")"
# ---- sound, as it comes
sound() { curl -s -m 20 -H 'content-type: audio/wav' "$url/v1/audio/transcriptions" "$@"; }
wav=tests/data/speech/wav/08-lights-on.wav
[[ $(gzip -c $wav | sound -H 'content-encoding: gzip' --data-binary @-) = '{"text":"lights on",'* ]] || fail "packed sound"
sound -H 'content-encoding: gzip' --data-binary @$wav | grep -q 'no gzip' || fail "sound that is no gzip passes"
gzip -c $wav | head -c 5000 | sound -H 'content-encoding: gzip' --data-binary @- | grep -q 'in the middle' || fail "half a sound passes"
head -c 300000000 /dev/zero | gzip -1 | sound -H 'content-encoding: gzip' --data-binary @- >"$work/body"
grep -q 'request_too_large' "$work/body" || fail "a bomb of sound: $(cat "$work/body")"
peak=$(awk '/VmHWM/ { print $2 }' "/proc/$(gateway)/status")
[ "$peak" -lt 200000 ] || fail "the server took $peak KiB for bombs"
curl -s -m 5 "$url/healthz" | grep -q ok || fail "the server is gone"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
echo "packed answers, streams, requests and sound; bombs stop at the limit"
