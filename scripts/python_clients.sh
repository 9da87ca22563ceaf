#!/usr/bin/env bash
# Puts the Python clients that the tests try, of the versions in tests/python/requirements.txt, from PyPI into
# build/python, and OpenAI's older and newer package beside them (openai-1, openai-3: folders for PYTHONPATH). Prints the
# path of build/python. Exits with 77 and a sentence where that cannot be: no Python 3.11 with venv, or PyPI is not reached.
set -u
cd "$(dirname "$0")/.."
venv=$PWD/build/python
mkdir -p build
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "they need Python 3.11 or later" >&2
    exit 77
}
exec 9>build/.python.lock
flock 9
wanted=$(python3 --version && cat tests/python/*.txt)
[ "$(cat "$venv/.wanted" 2>/dev/null)" != "$wanted" ] || { echo "$venv"; exit; }
rm -rf "$venv"
python3 -m venv "$venv" >&2 || { echo "python3 has no venv" >&2; exit 77; }
# Wheels alone: nothing is compiled here, neither C nor modules that no test imports. uv installs them with a quarter of
# pip's CPU seconds (9 of 38); it knows no index of pip's configuration, so pip installs what uv cannot.
pip() { timeout 300 "$venv/bin/pip" -q --disable-pip-version-check --no-input install --only-binary :all: "$@"; }
install() {
    timeout 300 "$venv/bin/uv" pip install -q --no-cache --no-deps --only-binary :all: --python "$venv/bin/python" "$@" 2>/dev/null ||
        pip --no-deps --no-compile "$@" >&2 || { echo "pip could not install ${*: -1}" >&2; exit 77; }
}
pip uv==0.13.9 >&2 || echo "uv cannot be had: pip installs all" >&2
install -r tests/python/requirements.txt
for older in tests/python/openai-*.txt; do
    install --target "$venv/$(basename "$older" .txt)" -r "$older"
done
printf '%s' "$wanted" >"$venv/.wanted"
echo "$venv"
