#!/usr/bin/env bash
# Puts Ray, of the version in tests/ray/requirements.txt, from PyPI into build/ray, and prints its path. Exits with 77 and a
# sentence where that cannot be: no Python 3.11 with venv, or PyPI is not reached.
source "$(dirname "$0")/python_env.bash"
python_env ray tests/ray/requirements.txt
python_install --only-binary :all: -r tests/ray/requirements.txt
python_env_done tests/ray/requirements.txt
