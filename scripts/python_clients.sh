#!/usr/bin/env bash
# Puts the Python clients that the tests try, of the versions in tests/python/requirements.txt, from PyPI into
# build/python, and OpenAI's older and newer package beside them (openai-1, openai-3: folders for PYTHONPATH). Prints the
# path of build/python. Exits with 77 and a sentence where that cannot be: no Python 3.11 with venv, or PyPI is not reached.
source "$(dirname "$0")/python_env.bash"
python_env python tests/python/*.txt
# Wheels alone: nothing is compiled here, neither C nor modules that no test imports.
python_install --only-binary :all: -r tests/python/requirements.txt
for older in tests/python/openai-*.txt; do
    python_install --only-binary :all: --target "$venv/$(basename "$older" .txt)" -r "$older"
done
python_env_done tests/python/*.txt
