#!/usr/bin/env bash
# Let allocations fail in a served cluster, in the gateway or in a worker, while it starts and while it answers:
#
#     tests/fail/serve.sh [MAX [OFFSET [PART ...]]]      MAX: places a kind of request (0: all); OFFSET: which
#     parts: gateway aliases dialects http2 grpc tls worker documents sessions export onward start
#
# The process must answer rightly or with an error, and the next request rightly; it must not crash, hang or
# keep what it took for a request. Where it cannot start, it must end with a sentence.
source "$(dirname "$0")/../e2e/lib.sh"
max=${1:-0} offset=${2:-0}
shift $(($# > 2 ? 2 : $#))
parts=${*:-gateway aliases dialects http2 grpc tls worker documents sessions export onward start}
fail_dir=$(dirname "$SHOAL_BIN")/fail
control=$work/control
faults=0
# What a refusal looks like: a closed connection, a status that does not blame the client, an error at the end of a
# stream, in the trace of a pipeline's optional stage, beside what the words alone found, and for the verdict on an answer.
refusal='^closed|^status (429|50[0-9])|^"error":|"error":"out of memory"|"degraded":"[^"]*out of memory"|"valid":null,"at":"[^"]*","why":"memory ran out"'

# serve_under WHOM CONFIG: the process whose command line contains WHOM is the one under test
serve_under() {
    local plain=$SHOAL_BIN
    cat >"$work/shoal" <<EOF
#!/bin/sh
SHOAL_FAIL_CONTROL=$control SHOAL_FAIL_PROCESS='$1' MALLOC_PERTURB_=165 \\
    LD_PRELOAD=$fail_dir/libfail_interpose.so exec $plain "\$@"
EOF
    chmod +x "$work/shoal"
    rm -f "$control"
    SHOAL_BIN=$work/shoal
    start_shoal "$2" --no-supervise # the process under test is the one that is started
    SHOAL_BIN=$plain
}

# sweep LABEL KIND SWEEP-OPTIONS...; curl_options are the client's
curl_options=()
sweep() {
    local label=$1 kind=$2
    shift 2
    # These tell how workers are; the allocation that fails may be one of a look at them.
    case $kind in metrics | readyz | requests | models) set -- -a "$@" ;; esac
    "$fail_dir/fail_sweep" -l "$label" -c "$control" -r "$refusal" -m "$max" -b "$offset" -t 90 "$@" -- \
        tests/fail/ask.sh "$kind" "$url" "${curl_options[@]}" || faults=$((faults + 1))
}

# What the process held when it ended: a request that was not given back shows here.
live() { od -A n -t d8 -j 56 -N 8 "$control" | tr -d ' '; }
stop() {
    kill -0 "$server" 2>/dev/null || echo "the server ended by itself: $(grep event=stopping "$log" || tail -2 "$log")"
    stop_shoal
    [ "$stopped" -eq 0 ] && [ "$(live)" -le "$held" ] && return
    echo "FAIL $1: the server ended with status $stopped and $(live) blocks, $held without failures"
    grep -E 'level=error' "$log" | tail -3
    faults=$((faults + 1))
}

# sweep_each LABEL WHOM CONFIG "KIND ..." SWEEP-OPTIONS...: a fresh server for each kind of request, so that what
# one of them leaks is named; one server for all when MAX says that it should not take long
sweep_each() {
    local label=$1 whom=$2 config=$3 kinds=$4
    shift 4
    serve_under "$whom" "$config"
    for kind in $kinds; do tests/fail/ask.sh "$kind" "$url" "${curl_options[@]}" >/dev/null; done
    held=999999999
    stop "$label"
    held=$(live)
    if [ "$max" -gt 0 ]; then
        serve_under "$whom" "$config"
        for kind in $kinds; do sweep "$label $kind" "$kind" "$@"; done
        stop "$label"
        return
    fi
    for kind in $kinds; do
        serve_under "$whom" "$config"
        sweep "$label $kind" "$kind" "$@"
        stop "$label $kind"
    done
}

all='chat routed verified cached stream tools functions choice guided schema completions embeddings classify tag process models metrics readyz pipelines requests events'
part_gateway() { sweep_each gateway ' serve ' shoal.yaml "$all"; }
part_aliases() {
    { shipped; echo 'aliases: {gpt-4o-mini: home-chat-s, "llama3:latest": home-embed}'; } >"$work/aliases.yaml"
    sweep_each aliases ' serve ' "$work/aliases.yaml" 'aliased aliased_ollama alias models'
}
part_dialects() { sweep_each dialects ' serve ' shoal.yaml 'llama mixed tokens words prompt props tensors tensor_model message message_stream message_count message_models'; }
part_http2() {
    curl_options=(--http2-prior-knowledge)
    sweep_each http2 ' serve ' shoal.yaml 'chat stream classify models'
    curl_options=()
}
part_grpc() {
    sweep_each grpc ' serve ' shoal.yaml 'grpc_classify grpc_chat grpc_process grpc_infer grpc_infer_stream grpc_infer_pieces grpc_reflect grpc_health grpc_watch'
}
part_tls() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key.pem" \
        -out "$work/cert.pem" -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null || return
    ln -sfn "$PWD/models" "$PWD/lexicons" "$work" # paths start at the configuration's folder
    { echo 'tls: {cert: cert.pem, key: key.pem}'; cat shoal.yaml; } >"$work/tls.yaml"
    for version in --http2 --http1.1; do
        curl_options=(-k "$version")
        sweep_each "tls $version" ' serve ' "$work/tls.yaml" 'stream classify'
    done
    curl_options=()
}
part_worker() {
    sweep_each 'worker chat-s' ' worker --name home-chat-s ' shoal.yaml 'chat stream tools schema completions'
    sweep_each 'worker tokens' ' worker --name home-chat-s ' shoal.yaml 'tokens words prompt props'
    sweep_each 'worker intent' ' worker --name home-intent ' shoal.yaml classify
    sweep_each 'worker slots' ' worker --name home-slots ' shoal.yaml tag
    printf 'manifest: %s\nmodels: [{name: home-ears}]\n' "$PWD/models/models.json" >"$work/ears.yaml"
    sweep_each 'worker ears' ' worker --name home-ears ' "$work/ears.yaml" 'transcribe transcript'
    sweep_each 'gateway ears' ' serve ' "$work/ears.yaml" 'transcribe transcript'
    sweep_each 'worker embed' ' worker --name home-embed ' shoal.yaml embeddings
}
part_documents() {
    printf 'manifest: %s\nretrieval: {path: collections.db}\nmodels: [{name: home-embed}, {name: home-chat-s}]\n' \
        "$PWD/models/models.json" >"$work/documents.yaml"
    start_shoal "$work/documents.yaml"
    for ask in ' {"name":"home"}' \
        '/home/documents {"source":"b","text":"Bleed the radiators every autumn.","metadata":{"k":1}}' \
        '/home/documents {"source":"a","text":"The lamp","metadata":{"k":1}}'; do
        curl -s -o /dev/null "$url/v1/collections${ask%% *}" -d "${ask#* }"
    done
    stop_shoal
    sweep_each 'gateway documents' ' serve ' "$work/documents.yaml" 'documents search answer collections'
}
part_sessions() {
    export SHOAL_STATE=$work/state
    printf 'manifest: %s\nmodels: [{name: home-chat-s}]\n' "$PWD/models/models.json" >"$work/sessions.yaml"
    start_shoal "$work/sessions.yaml"
    ask='{"model":"home-chat-s","max_tokens":4,"session":"kept","messages":[{"role":"user","content":"hello"}]}'
    curl -s -o /dev/null "$url/v1/chat/completions" -d "$ask"
    PREVIOUS=$(curl -s "$url/v1/responses" -d '{"model":"home-chat-s","input":"hello","max_output_tokens":4}' | grep -o 'resp_[0-9a-f]*' | head -1)
    export PREVIOUS
    stop_shoal
    sweep_each 'gateway sessions' ' serve ' "$work/sessions.yaml" 'respond goes_on in_session session'
}
part_export() { # to nobody: what waits, or is dropped, is never an answer's business
    { shipped; printf 'otel: {endpoint: "http://127.0.0.1:1", interval_ms: 20, metrics_interval_ms: 200, queue_bytes: 65536}\n'; } >"$work/export.yaml"
    sweep_each 'gateway export' ' serve ' "$work/export.yaml" 'process chat verified routed classify'
}
part_onward() {
    sweep_each 'gateway onward' ' serve ' shoal.yaml 'chat stream process classify models' -o
    sweep_each 'worker onward' ' worker --name home-chat-s ' shoal.yaml 'chat stream tools schema' -o
}
part_start() {
    printf 'manifest: %s\nmodels: [{name: home-intent}]\n' "$PWD/models/models.json" >"$work/one.yaml"
    for whom in serve 'worker --name home-intent'; do
        "$fail_dir/fail_sweep" -l "start of $whom" -r "$refusal" -p " $whom " -m "$max" -b "$offset" -t 90 -- \
            tests/fail/start.sh "$SHOAL_BIN" "$work/one.yaml" || faults=$((faults + 1))
    done
}

for part in $parts; do "part_$part"; done
echo "$faults of the sweeps over the served cluster found faults"
[ "$faults" -eq 0 ]
