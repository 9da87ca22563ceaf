#!/usr/bin/env bash
# Puts schemathesis, of the version that the tests know, from PyPI into build/schemathesis, and prints the path of its
# program. Exits with 77 and a sentence where that cannot be: no Python 3 with venv, or PyPI is not reached.
set -u
cd "$(dirname "$0")/.."
version=4.32.5
venv=$PWD/build/schemathesis
mkdir -p build
exec 9>build/.schemathesis.lock
flock 9
if [ "$(cat "$venv/.version" 2>/dev/null)" != "$version" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || { echo "python3 has no venv" >&2; exit 77; }
    timeout 300 "$venv/bin/pip" -q --disable-pip-version-check --no-input install --no-compile "schemathesis==$version" >&2 ||
        { echo "pip could not install schemathesis $version" >&2; exit 77; }
    echo "$version" >"$venv/.version"
fi
echo "$venv/bin/schemathesis"
