#!/usr/bin/env bash
# Make what gateways and workers authenticate each other with, by openssl: a CA, a certificate of the workers and one of the
# gateways. Prints the commands that bring them into a cluster.
#
#   deploy/kubernetes/certificates.sh FOLDER [WORKER_NAME [GATEWAY_NAME]]
#
# In FOLDER: ca.key and ca.crt (ten years), worker/ and gateway/ with tls.crt, tls.key and ca.crt (a year). Run it again to renew
# both certificates with the CA that is there, and the commands again: pods read changed Secrets without a restart. Keep ca.key
# secret and outside of the cluster, which does not need it.
set -euo pipefail
umask 077
[ $# -ge 1 ] || { sed -n 's/^# \{0,1\}//; 2,9p' "$0" >&2; exit 2; }
folder=$1
mkdir -p "$folder"/{worker,gateway}
new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }

if [ ! -e "$folder/ca.key" ]; then
    new_key "$folder/ca.key"
    openssl req -x509 -new -key "$folder/ca.key" -days 3650 -subj "/CN=shoal-ca" -out "$folder/ca.crt" \
        -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign"
fi

# certificate FOLDER NAME USAGE: signed by that CA, with NAME as its common name and its DNS name.
certificate() {
    new_key "$1/tls.key.new"
    openssl req -new -key "$1/tls.key.new" -subj "/CN=$2" |
        openssl x509 -req -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -days 365 -out "$1/tls.crt.new" -extfile <(
            echo "basicConstraints=critical,CA:FALSE"
            echo "keyUsage=critical,digitalSignature"
            echo "extendedKeyUsage=$3"
            echo "subjectAltName=DNS:$2"
            echo "subjectKeyIdentifier=hash"
            echo "authorityKeyIdentifier=keyid") 2>/dev/null
    mv "$1/tls.key.new" "$1/tls.key"
    mv "$1/tls.crt.new" "$1/tls.crt"
    cp "$folder/ca.crt" "$1/ca.crt"
}
certificate "$folder/worker" "${2:-shoal-worker}" serverAuth
certificate "$folder/gateway" "${3:-shoal-gateway}" clientAuth

for of in worker gateway; do
    echo "kubectl -n shoal create secret generic shoal-$of-tls --from-file=$folder/$of --dry-run=client -o yaml | kubectl apply -f -"
done
