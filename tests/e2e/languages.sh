#!/usr/bin/env bash
# match and guard stages over HTTP: German, French, Spanish and English requests, questions and their answers, a
# tagger's spans, and what is refused at start.
source "$(dirname "$0")/lib.sh"
out=$work/out

# ask PIPELINE INPUT [MORE]: the answer in $out; MORE is further JSON members, with their comma.
ask() {
    curl -s "$url/v1/process" -H 'content-type: application/json' \
        -d "{\"pipeline\":\"$1\",\"input\":\"$2\"${3:-}}" >"$out"
}
# show EXPRESSION: in Python, of the last answer d.
show() {
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
guard, targets = d.get("guard") or {}, d.get("targets")
ids = " ".join(x["id"] for x in (targets or {}).get("devices", []))
token = guard.get("confirm", {}).get("token")
refused = (d.get("error") or {}).get("param")
call = (d.get("tool_call") or {}).get("name")
nothing = not targets and not d.get("tool_call") and not d.get("tool_calls") and not d.get("results")
print(eval(sys.argv[2]))' "$out" "$1"
}
# gives EXPRESSION WANT
gives() {
    local got
    got=$(show "$1")
    [ "$got" = "$2" ] || fail "$1 is '$got', not '$2': $(cat "$out")"
}
# names INPUT IDS: nothing stands against it, and these are meant.
names() {
    ask home "$1"
    gives 'guard["verdict"]' pass
    gives ids "$2"
}
# held INPUT VERDICT RULE LANGUAGE: it is held back, with words, and nothing is left to act on.
held() {
    ask home "$1"
    gives '" ".join([guard["verdict"], guard["rule"], guard["language"]])' "$2 $3 $4"
    gives nothing True
    gives 'len(d["text"]) > 5 and len(guard["why"]) > 5' True
}

start_shoal examples/languages.yaml
names "Mach das Küchenlicht an" light.kitchen
names "mach das kuechenlicht an" light.kitchen
names "Licht in Küche und Flur an" "light.kitchen light.hall"
names "Alle Lichter außer Küche aus" "light.hall light.lounge"
names "Leselampe aus" light.lounge
names "allume l'éclairage de la cuisine" light.kitchen
names "éteins toutes les lumières sauf le couloir" "light.kitchen light.lounge"
names "enciende las luces del salón" light.lounge
names "apaga todas las luces menos la cocina" "light.hall light.lounge"
names "turn on the kitchen light" light.kitchen
names "Küchen- und Flurlicht an" "light.kitchen light.hall"
names "apaga todas las luces menos el pasillo" "light.kitchen light.lounge"
names "Erdgeschoss aus" "light.kitchen light.hall"
names "lights downstairs on" "light.kitchen light.hall"
names "Wie spät ist es?" ""
gives 'targets["label"]' none

held "Mach das Küchenlicht nicht an" deny negation de
held "n'allume pas la lumière de la cuisine" deny negation fr
held "no enciendas la luz de la cocina" deny negation es
held "don't turn on the kitchen light" deny negation en
held "Mach das Küchenlicht in zehn Minuten an" deny later de
held "allume la lumière de la cuisine demain" deny later fr
held "enciende la luz de la cocina más tarde" deny later es
held "Schalte das Saunalicht ein" deny unknown de
gives 'd["text"]' "Saunalicht gibt es hier nicht."
held "allume la lumière du sauna" deny unknown fr
held "Mach das Licht an" ask ambiguous de
held "abre la puerta" ask dangerous es
held "Mach den Herd an" ask dangerous de
gives 'd["text"]' "Herd: bist du sicher?" # the configuration's own words
held "turn everything off" ask dangerous en
held "turn on the light" ask ambiguous en
gives 'd["text"]' "Which one: Küchenlicht, Flurlicht or Stehlampe?"
held "Ist die Haustür offen?" deny question de

# ---- a question, and what may come of it
held "Schließ die Haustür auf" ask dangerous de
token=$(show token)
ask home "ja bitte" ",\"confirm\":\"$token\""
gives 'guard["verdict"]' pass
gives ids lock.front
ask home "ja bitte" ",\"confirm\":\"$token\""
gives refused confirm
held "Schließ die Haustür auf" ask dangerous de
[ "$(show token)" != "$token" ] || fail "a question came out of the cache"
token=$(show token)
ask home "nein danke" ",\"confirm\":\"$token\""
gives 'guard["verdict"] + " " + guard["rule"]' "deny declined"
gives nothing True

# ---- what a ground stage would do
ask doors "lock the front door"
gives call lock.lock
ask doors "unlock the front door"
gives 'guard["verdict"] + " " + str(call)' "ask None"
token=$(show token)
ask doors "yes, do it" ",\"context\":{\"confirm\":\"$token\"}"
gives call lock.unlock

# ---- hostile requests
printf '{"pipeline":"home","input":"%s"}' "$(printf 'Licht %.0s' $(seq 500))" >"$work/long"
curl -s "$url/v1/process" -d @"$work/long" >"$out"
gives 'guard["verdict"] + " " + guard["rule"]' "deny unread"
ask home "ja" ',"confirm":"0123456789abcdef0123456789abcdef"'
gives refused confirm
ask home "ja" ',"confirm":["x"]'
gives refused confirm
ask home "Licht" ',"devices":[{"id":"a","name":"b","groups":["\u0007"]}]'
gives refused context.devices
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"

# ---- with a tagger's spans
sed "s#\.\./\.\./\.\./#$PWD/#" tests/data/pipelines/guards.yaml >"$work/guards.yaml"
start_shoal "$work/guards.yaml"
ask slots "turn off the kitchen light"
gives ids light.kitchen
ask slots "lock the front door"
gives ids lock.front
stop_shoal

# ---- refused at start
# refuses SED PATTERN
refuses() {
    sed -e "s#\.\./#$PWD/#" -e "$1" examples/languages.yaml >"$work/odd.yaml"
    "$SHOAL_BIN" serve -c "$work/odd.yaml" --port 0 >"$out" 2>&1 && fail "it serves with $1"
    grep -qE "$2" "$out" || fail "$1: $(cat "$out")"
}
refuses 's/rules: \[dangerous\]/rules: [danger]/' "odd.yaml:4[0-9]: .*'danger' is none of the rules unread, negation, later"
refuses 's/languages: \[en\]/languages: [it]/' "odd.yaml:4[0-9]: .*'it' is no language of"
refuses 's/ask_actions: .*/ask_kinds: [lcok]/' "ask_kinds\[0\]: 'lcok' is neither a kind of"
refuses 's/rule: dangerous,/rule: odd,/' "say\[0\]: 'odd' is none of the rules"
refuses 's#lexicons/devices#lexicons/home#' "lexicon: .*home.yaml:[0-9]+: there is no section"
echo "devices and what holds acts back, in four languages, questions answered once, spans, refusals"
