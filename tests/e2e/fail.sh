#!/usr/bin/env bash
# Some failing allocations and writes of each command, fuzz target and request; `make fail` tries all of them.
# early: its sweeps take minutes, which should not be the last ones
# long: minutes of CPU
cd "$(dirname "$0")/../.."
exec tests/fail/sweeps.sh short
