#!/usr/bin/env bash
# The documentation as static pages in build/html (make html): no server, no network. scripts/html/pages.py makes them.
set -euo pipefail
cd "$(dirname "$0")/.."
for attempt in 1 2; do
    for python in python3 /usr/bin/python3; do # markdown-it-py may be of PyPI, or Debian's, which its own Python finds
        ! "$python" -c 'import markdown_it' 2>/dev/null || exec "$python" scripts/html/pages.py "${1:-build/html}"
    done
    [ "$attempt" = 2 ] || scripts/setup.sh --html
done
echo "html: Python has no markdown_it (Debian: python3-markdown-it; PyPI: markdown-it-py)" >&2
exit 1
