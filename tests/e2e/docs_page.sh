#!/usr/bin/env bash
# The page at /docs: its headers, no network, and in Chromium what a person does with it. SHOAL_SHOTS=FOLDER keeps pictures.
source "$(dirname "$0")/lib.sh"
grep -rnE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://[^w$/]' assets/docs/*.js assets/docs/*.html &&
    fail "the page parses HTML or leaves the server"
start_shoal
curl -s -D "$work/head" "$url/docs" | grep -q '<script src="/assets/docs/docs.js" defer>' || fail "/docs is no page"
tr -d '\r' <"$work/head" | grep -q "^content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'" ||
    fail "no policy: $(cat "$work/head")"

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "Chromium is not installed"
npm_clients docs.mjs
"$chromium" --headless --no-sandbox --disable-gpu --dump-dom about:blank >"$work/chromium.log" 2>&1 ||
    skip "Chromium does not run here: $(tail -1 "$work/chromium.log")"
[ -z "${SHOAL_SHOTS:-}" ] || mkdir -p "$SHOAL_SHOTS"
export SHOAL_URL=$url SHOAL_CHROMIUM=$chromium
(cd build/node && timeout 120 node --test --test-reporter=tap docs.mjs) >"$work/node.log" 2>&1
rc=$?
if [ $rc -ne 0 ]; then
    grep -A25 '^not ok' "$work/node.log" | grep -vE '^ +(duration_ms|type):' | head -60
    fail "the page failed"
fi
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
grep -E '^# (pass|fail|skipped)' "$work/node.log" | tr '\n' ' '
echo
