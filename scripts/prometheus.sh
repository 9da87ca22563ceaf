#!/usr/bin/env bash
# Print the folder of prometheus and promtool: that of the installed ones, else of Debian's package, which is fetched into FOLDER and
# unpacked there. It is not installed: its service would start.
#
#   scripts/prometheus.sh FOLDER
set -euo pipefail
folder=${1:?FOLDER}
if command -v prometheus promtool >/dev/null 2>&1; then
    dirname "$(command -v prometheus)"
    exit
fi
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ ! -x "$folder/usr/bin/promtool" ]; then
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "prometheus is not installed" >&2; exit 1; }
    (cd "$folder" && rm -f ./*.deb && apt-get download -qq prometheus >/dev/null && dpkg -x prometheus_*.deb . && rm -f ./*.deb)
fi
echo "$folder/usr/bin"
