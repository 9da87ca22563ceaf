#!/usr/bin/env bash
# shoal ca and shoal token as people type them, and their files as openssl reads them.
source "$(dirname "$0")/lib.sh"
state=$work/state n=0

# expect CODE PATTERN ARGS...: exit status, and what is printed: on stdout for 0, else one sentence on stderr.
expect() {
    local code=$1 pattern=$2 status
    shift 2
    "$SHOAL_BIN" "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    [ $status -eq "$code" ] || fail "shoal $* ends with $status, not $code: $(cat "$work/err")"
    if [ "$code" -eq 0 ]; then file=$work/out; else file=$work/err; fi
    grep -qE -e "$pattern" "$file" || fail "shoal $* says: $(cat "$file")"
    [ "$code" -eq 0 ] || [ "$(grep -vc '^try: ' "$work/err")" -eq 1 ] || fail "shoal $*: $(cat "$work/err")"
    n=$((n + 1))
}

expect 1 'no cluster CA is there; make one with: shoal ca init' token create --state "$state"
expect 2 'cannot be the name of a cluster' ca init --state "$state" --cluster 'My House'
[ ! -e "$state/ca" ] || fail "a refused init leaves something behind"
expect 0 '^pin [0-9a-f]{64}$' ca init --state "$state" --cluster attic
pin=$(sed -n 's/^pin //p' "$work/out")
expect 2 'never overwritten' ca init --state "$state"
expect 0 "^cluster attic" ca show --state "$state"
SHOAL_STATE=$state expect 0 '^\{"cluster":"attic","pin":"'"$pin"'".*"certificates":\[\]\}' ca show --json
[ "$(stat -c %a "$state" "$state/ca" "$state/ca/ca.key" "$state/ca/ledger" | tr '\n' ' ')" = "700 700 600 600 " ] ||
    fail "modes: $(stat -c '%a %n' "$state" "$state"/ca/*)"

expect 0 '^[0-9a-f]{16}\.[0-9a-f]{32}\.'"$pin"'$' token create --state "$state"
token=$(cat "$work/out")
expect 0 "^${token%%.*}  node +open .* any" token list --state "$state"
expect 0 '"role":"gateway","until":' token create --state "$state" --role gateway --ttl 5m --json
expect 0 'gateway +open' token list --state "$state"
expect 0 . token create --state "$state" --name pi --replace
expect 0 '"state":"open","name":"pi","used_by":"","replace":true' token list --state "$state" --json
expect 0 'opens nothing any more' token revoke --state "$state" "${token%%.*}"
expect 0 "^${token%%.*}  node +revoked" token list --state "$state"
expect 1 'is not open: it is revoked' token revoke --state "$state" "${token%%.*}"
expect 1 'no token has the id' token revoke --state "$state" 0000000000000000
secret=${token#*.} secret=${secret%%.*}
grep -rq "$secret" "$state" && fail "the secret of a token is on disk"
for wrong in 0 -1h 1w 1.5h h "" 31d 9999999999999999d; do
    expect 2 'ttl is a length of time|lives 1 s to 30 days' token create --state "$state" --ttl "$wrong"
done
expect 2 'node or gateway, not "king"' token create --state "$state" --role king
expect 2 'must say which: give its name' token create --state "$state" --replace
expect 2 'cannot be the name of a node' token create --state "$state" --name 'a/b'
expect 1 'no member called "pi"' ca revoke --state "$state" pi
expect 2 'there is no "ca frobnicate"' ca frobnicate
expect 2 'missing arguments' ca revoke
expect 2 'too many arguments' ca init a
expect 2 'missing arguments' token

chmod 644 "$state/ca/ca.key"
expect 1 'others may read this secret; make it yours alone: chmod 600' ca show --state "$state"
chmod 600 "$state/ca/ca.key"
cp "$state/ca/ledger" "$work/ledger"
sed -i 's/ revoked$/ /; s/gateway/node/' "$state/ca/ledger"
expect 1 'ledger: line [0-9]+ is damaged' token create --state "$state"
cp "$work/ledger" "$state/ca/ledger"

if command -v openssl >/dev/null; then
    openssl verify -CAfile "$state/ca/ca.crt" "$state/ca/ca.crt" >"$work/out" 2>&1 || fail "openssl: $(cat "$work/out")"
    openssl crl -in "$state/ca/crl.pem" -CAfile "$state/ca/ca.crt" -noout 2>&1 | grep -q 'verify OK' ||
        fail "openssl does not believe the list of revoked certificates"
    got=$(openssl x509 -in "$state/ca/ca.crt" -noout -pubkey | openssl pkey -pubin -outform DER | sha256sum)
    [ "${got%% *}" = "$pin" ] || fail "the pin is not the digest of the CA's public key"
    n=$((n + 3))
fi
# Ten commands at once: none loses what another did.
for i in 1 2 3 4 5 6 7 8 9 10; do "$SHOAL_BIN" token create --state "$state" >/dev/null & pids[i]=$!; done
for pid in "${pids[@]}"; do wait "$pid" || fail "a token could not be made beside others"; done
[ "$("$SHOAL_BIN" token list --state "$state" | grep -c ' open ')" -eq 12 ] ||
    fail "tokens were lost: $("$SHOAL_BIN" token list --state "$state")"
echo "$n commands, and ten at once"
