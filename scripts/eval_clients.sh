#!/usr/bin/env bash
# Puts lm-evaluation-harness and locust, of the versions in tests/evals/requirements.txt, from PyPI into build/evals, and
# prints its path. Exits with 77 and a sentence where that cannot be: no Python 3.11 with venv, or PyPI is not reached.
source "$(dirname "$0")/python_env.bash"
python_env evals tests/evals/requirements.txt
python_install -r tests/evals/requirements.txt
python_env_done tests/evals/requirements.txt
