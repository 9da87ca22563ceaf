#!/usr/bin/env bash
# deploy_parsers.sh nomad | compose: builds a program that reads files of deploy/ as Nomad or Docker Compose does (tests/deploy/*.go), with
# their own modules from Go's module proxy, into build/go, unless it is there already, and prints its path. Nomad's takes some minutes
# the first time, most of them for downloads.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
nomad) modules=(github.com/hashicorp/nomad@v1.11.2 github.com/hashicorp/nomad/api@v0.0.0-20261016150620-df630b26e78a) ;;
compose) modules=(github.com/compose-spec/compose-go/v2@v2.16.2) ;;
*) echo "deploy_parsers.sh: nomad or compose" >&2; exit 2 ;;
esac
source=$PWD/tests/deploy/$1.go
mkdir -p build/go
program=$PWD/build/go/$1-$(printf '%s ' "${modules[@]}" | cat - "$source" | sha256sum | cut -c1-12)
exec 9>"build/go/.lock.$1"
flock 9
if [ ! -x "$program" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cp "$source" "$work/main.go"
    cd "$work"
    export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false -mod=mod -p=2"
    {
        go mod init shoal.example/parser
        go get "${modules[@]}"
        nice -n 19 go build -ldflags "-s -w" -o parser .
    } >&2
    mv parser "$program.part"
    mv "$program.part" "$program"
fi
echo "$program"
