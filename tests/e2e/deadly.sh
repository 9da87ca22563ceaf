#!/usr/bin/env bash
# A request that makes every worker die which works on it: it is given up with a clear error and refused for a while,
# whatever else runs on those workers goes on, and so do other models. Workers die of a word in the request by a
# preloaded library (tests/fail/deadly.c); nothing else knows which request it is.
source "$(dirname "$0")/lib.sh"
deadly_lib=$(dirname "$SHOAL_BIN")/fail/libfail_deadly.so
[ -f "$deadly_lib" ] || skip "$deadly_lib is not built"
plain=$SHOAL_BIN
cat >"$work/shoal" <<END
#!/bin/sh
SHOAL_DEADLY=xyzzyplugh LD_PRELOAD=$deadly_lib exec $plain "\$@"
END
chmod +x "$work/shoal"
cat >"$work/c.yaml" <<END
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-chat-s}, {name: home-ears}]
END
SHOAL_BIN=$work/shoal
start_shoal "$work/c.yaml"
chat() { # SEED TEXT; the time that the worker is told is another each time
    curl -sN -m 100 -w '\nstatus %{http_code}\n' "$url/v1/chat/completions" -d '{"model":"home-chat-s","stream":true,"temperature":1,"seed":'"$1"',"ignore_eos":true,"max_tokens":1900,"messages":[{"role":"user","content":"'"$2"'"}]}'
}
pid_of() { curl -s "$url/readyz" | tr '{' '\n' | grep "\"$1/0\"" | grep -o '"pid":[0-9]*' | cut -d: -f2; }
deaths() { grep -c "event=worker_exited replica=$1/0" "$log"; }
# The last of the dead is noticed a little after its caller, and started again.
settle() {
    for _ in $(seq 600); do
        [ "$(grep -c 'event=worker_exited' "$log")" = "$(grep -c 'event=worker_restart' "$log")" ] &&
            curl -s "$url/readyz" | grep -q '"status":"ready"' && return
        sleep 0.05
    done
    fail "not all workers came back: $(curl -s "$url/readyz")"
}
classify() { curl -s -m 10 -o "$work/c" -w '%{http_code}' "$url/v1/classify" -d '{"model":"home-intent","input":"play jazz '"$1"'"}'; }

chat 1 "tell me everything" >"$work/alone" # what an undisturbed stream says
grep -q 'data: \[DONE\]' "$work/alone" || fail "an undisturbed stream: $(tail -c 300 "$work/alone")"
intent_pid=$(pid_of home-intent)

# ---- a generation ------------------------------------------------------------------------------------------
chat 1 "tell me everything" >"$work/innocent" &
innocent=$!
chat 2 "say xyzzyplugh" >"$work/killer" &
killer=$!
n=0
while kill -0 $killer 2>/dev/null; do
    n=$((n + 1))
    [ "$(classify $n)" = 200 ] || fail "another model while workers die: $(cat "$work/c")"
done
wait $killer
grep -q 'status 422' "$work/killer" || fail "the deadly request: $(cat "$work/killer")"
grep -q '"code":"request_stops_workers"' "$work/killer" || fail "no code: $(cat "$work/killer")"
grep -q 'worker after worker of home-chat-s stopped as it worked on it; change it' "$work/killer" ||
    fail "no advice: $(cat "$work/killer")"
grep -q 'component=calls event=quarantined model=home-chat-s task=generate' "$log" || fail "nothing was quarantined"
settle
n_deaths=$(deaths home-chat-s)
[ "$n_deaths" -ge 5 ] || fail "given up after $n_deaths deaths"
wait $innocent
text_of() { sed -n 's/^data: .*"delta":{.*"content":"\(.*\)"}.*/\1/p' "$1" | tr -d '\n'; }
[ -n "$(text_of "$work/alone")" ] || fail "no text in $(head -c 600 "$work/alone")"
[ "$(text_of "$work/innocent")" = "$(text_of "$work/alone")" ] || fail "the stream beside it says something else"
grep -q '"error"' "$work/innocent" && fail "the stream beside it: $(grep '"error"' "$work/innocent")"

# The same request, sent later and with another seed, is not tried again; others are.
chat 3 "say xyzzyplugh" >"$work/again"
grep -q 'status 422' "$work/again" && grep -q request_stops_workers "$work/again" || fail "again: $(cat "$work/again")"
[ "$(deaths home-chat-s)" -eq "$n_deaths" ] || fail "it was tried again: $(deaths home-chat-s) deaths, were $n_deaths"
chat 2 "say something else" | grep -q 'data: \[DONE\]' || fail "home-chat-s answers nothing any more"

# ---- an upload ---------------------------------------------------------------------------------------------
wav=tests/data/speech/wav/08-lights-on.wav
{ cat "$wav"; printf 'xyzzyplugh'; } >"$work/deadly.wav"
hear() { curl -s -m 100 -w '\nstatus %{http_code}\n' "$url/v1/audio/transcriptions" -F file=@"$1" -F model=home-ears; }
hear "$work/deadly.wav" >"$work/heard"
grep -q 'status 422' "$work/heard" && grep -q request_stops_workers "$work/heard" || fail "the upload: $(cat "$work/heard")"
settle
n_deaths=$(deaths home-ears)
hear "$work/deadly.wav" >"$work/heard"
grep -q 'status 422' "$work/heard" || fail "the upload again: $(cat "$work/heard")"
[ "$(deaths home-ears)" -eq "$n_deaths" ] || fail "the upload was tried again: $(deaths home-ears) deaths, were $n_deaths"
hear "$wav" | grep -q '"text":"lights on"' || fail "home-ears hears nothing any more"

[ "$(pid_of home-intent)" = "$intent_pid" ] || fail "a worker that had nothing to do with it died"
curl -s "$url/readyz" | grep -q '"status":"ready"' || fail "not ready: $(curl -s "$url/readyz")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
echo "given up after $(deaths home-chat-s) deaths and $n_deaths for an upload; $n calls beside it answered"
