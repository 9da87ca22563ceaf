# python_env.bash: a virtual environment with packages of PyPI, for tests. Source it, from scripts/.
#
#   python_env NAME FILE...      $venv is build/NAME from now on, and empty, unless it was made from the same files: then the script
#                                ends here, and prints its path
#   python_install ARGS...       pip's, without dependencies: the files name all packages
#   python_env_done FILE...      it is whole; prints its path
#
# Where it cannot be made the script exits with 77 and a sentence: no Python 3.11 with venv, or PyPI is not reached.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python_wanted() { python3 --version && cat "$@"; }

python_env() {
    venv=$PWD/build/$1
    mkdir -p build
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
        echo "they need Python 3.11 or later" >&2
        exit 77
    }
    exec 9>"build/.$1.lock"
    flock 9
    [ "$(cat "$venv/.wanted" 2>/dev/null)" != "$(python_wanted "${@:2}")" ] || { echo "$venv"; exit; }
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || { echo "python3 has no venv" >&2; exit 77; }
    pip uv==0.13.9 >&2 || echo "uv cannot be had: pip installs all" >&2
}

pip() { timeout 300 "$venv/bin/pip" -q --disable-pip-version-check --no-input install "$@"; }

# uv installs with a quarter of pip's CPU seconds (9 of 38); it knows no index of pip's configuration, so pip installs what uv cannot.
python_install() {
    timeout 300 "$venv/bin/uv" pip install -q --no-cache --no-deps --python "$venv/bin/python" "$@" 2>/dev/null ||
        pip --no-deps --no-compile "$@" >&2 || { echo "pip could not install ${*: -1}" >&2; exit 77; }
}

python_env_done() {
    python_wanted "$@" >"$venv/.wanted"
    echo "$venv"
}
