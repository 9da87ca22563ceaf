#!/usr/bin/env bash
# The page at / in Chromium, driven by puppeteer-core: a person's ways through it, axe-core, a phone, the worst servers and
# models. SHOAL_SHOTS=FOLDER keeps pictures.
# long: Chromium, and half a minute of CPU
source "$(dirname "$0")/lib.sh"

# What it weighs, compressed: under 150 KB.
weight=$(for f in assets/icon.svg assets/page/*; do gzip -9 -c "$f" | wc -c; done | awk '{n += $1} END {print n}')
[ "$weight" -lt 153600 ] || fail "the page takes $weight bytes, compressed"
grep -rnE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://[^w$/]' assets/page && fail "the page parses HTML or leaves the server"

start_shoal
[ "$(curl -s "$url/")" = "Ollama is running" ] || fail "/ of a program is not what Ollama says"
curl -s -H 'accept: text/html' "$url/" | grep -q '<!doctype html>' || fail "/ is no page"
curl -s -H 'accept: text/html;q=0.1,application/json' "$url/" | grep -qx 'Ollama is running' || fail "/ is a page for a client of JSON"
curl -s -H 'accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' "$url/" | grep -q '<!doctype html>' || fail "/ is no page for a browser"
curl -sD - -o /dev/null -H 'accept: text/html' "$url/" | tr -d '\r' | grep '^vary: accept' | grep -qx 'vary: accept, accept-encoding' || fail "/ varies otherwise"
curl -s "$url/v1/pipelines" | grep -q '{"id":"home","object":"pipeline","stages":\[{"stage":"line","kind":"line","optional":false}' || fail "the pipelines"

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "Chromium is not installed"
npm_clients page*.mjs
"$chromium" --headless --no-sandbox --disable-gpu --dump-dom about:blank >"$work/chromium.log" 2>&1 ||
    skip "Chromium does not run here: $(tail -1 "$work/chromium.log")"
[ -z "${SHOAL_SHOTS:-}" ] || mkdir -p "$SHOAL_SHOTS"
export SHOAL_URL=$url SHOAL_CHROMIUM=$chromium SHOAL_SPEECH=$PWD/tests/data/speech/wav/08-lights-on.wav
(cd "$modules" && timeout 300 node --test --test-reporter=tap page.mjs) >"$work/node.log" 2>&1
rc=$?
if [ $rc -ne 0 ]; then
    grep -A25 '^not ok' "$work/node.log" | grep -vE '^ +(duration_ms|type):' | head -80
    fail "the page failed"
fi
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
echo "$weight bytes compressed; $(grep -E '^# (pass|fail|skipped)' "$work/node.log" | tr '\n' ' ')"
