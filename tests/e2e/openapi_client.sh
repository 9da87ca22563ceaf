#!/usr/bin/env bash
# openapi-python-client makes a client of /openapi.json without a warning; all its modules import, and its calls work.
# long: packages of PyPI
source "$(dirname "$0")/lib.sh"
venv=$(scripts/openapi_client.sh 2>"$work/install") || skip "openapi-python-client: $(tail -1 "$work/install")"
shipped >"$work/c.yaml"
start_shoal "$work/c.yaml"
curl -s "$url/openapi.json" >"$work/openapi.json"
# The generator knows JSON, forms and bytes; other media types it is told to send as bytes.
cat >"$work/generator.yaml" <<END
post_hooks: []
content_type_overrides: {audio/*: application/octet-stream, image/png: application/octet-stream, image/jpeg: application/octet-stream, text/csv: application/octet-stream, application/x-jsonl: application/octet-stream}
END
"$venv/bin/openapi-python-client" generate --path "$work/openapi.json" --output-path "$work/shoal_api" --meta none \
    --config "$work/generator.yaml" --fail-on-warning >"$work/generated" 2>&1 || {
    head -60 "$work/generated"
    fail "no client was generated"
}
# Warnings are errors, too: such as those of a module that is odd Python.
PYTHONPATH=$work PYTHONDONTWRITEBYTECODE=1 timeout 120 "$venv/bin/python" -W error tests/python/openapi_client.py "$url" >"$work/said" 2>&1 || {
    tail -30 "$work/said"
    fail "the generated client does not work"
}
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
cat "$work/said"
