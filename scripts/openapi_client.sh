#!/usr/bin/env bash
# Puts openapi-python-client, of the version that the tests know, from PyPI into build/openapi-client, and prints the path
# of that folder. Exits with 77 and a sentence where that cannot be: no Python 3 with venv, or PyPI is not reached.
set -u
cd "$(dirname "$0")/.."
version=0.29.1
venv=$PWD/build/openapi-client
mkdir -p build
exec 9>build/.openapi-client.lock
flock 9
if [ "$(cat "$venv/.version" 2>/dev/null)" != "$version" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || { echo "python3 has no venv" >&2; exit 77; }
    timeout 300 "$venv/bin/pip" -q --disable-pip-version-check --no-input install --no-compile "openapi-python-client==$version" >&2 ||
        { echo "pip could not install openapi-python-client $version" >&2; exit 77; }
    echo "$version" >"$venv/.version"
fi
echo "$venv"
