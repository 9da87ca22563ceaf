#!/usr/bin/env bash
# otelcol.sh FOLDER: builds the OpenTelemetry Collector for tests into FOLDER/otelcol-VERSION, from Go modules, unless it is
# there already, and prints the program's path. It holds an OTLP receiver and an exporter to files, nothing else
# (tests/data/otelcol/builder.yaml): about two minutes of two cores the first time.
set -eu
cd "$(dirname "$0")/.."
version=v0.161.0
folder=$(mkdir -p "$1" && cd "$1" && pwd)
program=$folder/otelcol-$version
exec 9>"$folder/.otelcol.lock"
flock 9
if [ ! -x "$program" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cp tests/data/otelcol/builder.yaml "$work"
    cd "$work"
    export CGO_ENABLED=0 GOFLAGS=-trimpath
    {
        GOBIN=$work go install "go.opentelemetry.io/collector/cmd/builder@$version"
        ./builder --config=builder.yaml
    } >&2
    mv otelcol "$program.part"
    mv "$program.part" "$program"
fi
echo "$program"
