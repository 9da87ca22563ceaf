#!/usr/bin/env bash
# Speech from file to text: the command, the endpoint in its forms and from its cache, and the openai client.
source "$(dirname "$0")/lib.sh"
wav=tests/data/speech/wav
said=$(build/shoal transcribe home-ears $wav/08-lights-on.wav) || fail "shoal transcribe"
[ "$said" = "lights on" ] || fail "heard: $said"
build/shoal transcribe home-ears --format srt - <$wav/08-lights-on.wav | grep -q '^00:00:00,000 --> 00:00:01,' ||
    fail "no SRT from standard input"
build/shoal transcribe home-ears README.md >/dev/null 2>"$work/e" && fail "heard a text file"
grep -q 'README.md: not a supported audio file' "$work/e" || fail "$(cat "$work/e")"
build/shoal transcribe home-ears -l klingon $wav/08-lights-on.wav >/dev/null 2>&1
[ $? = 2 ] || fail "an unknown language is wrong usage"

heard=$(build/shoal transcribe home-ears $wav/22-music.wav 2>"$work/e") && [ -z "$heard" ] || fail "music: $heard"
grep -q '22-music.wav: no speech was found; --no-vad' "$work/e" || fail "nothing is said of nothing: $(cat "$work/e")"
build/shoal transcribe home-ears --no-vad $wav/20-faint-hiss.wav 2>&1 | grep -q 'no speech was found$' || fail "--no-vad"

silero=../shared/borrowed/silero-vad
if [ -f $silero/jfk.wav ]; then
    [ "$(build/shoal vad -m $silero/silero_vad_16k.safetensors $silero/jfk.wav | head -1)" = "0.290 2.302" ] || fail "shoal vad"
else
    echo "without Silero's weights: shoal vad was not tried"
fi
build/shoal vad $wav/08-lights-on.wav >/dev/null 2>"$work/e"
[ $? = 2 ] && grep -q -e --model "$work/e" || fail "shoal vad without a model"

cat >"$work/c.yaml" <<EOF
manifest: $PWD/models/models.json
limits: {max_audio_mb: 1, max_body_bytes: 4096}
models: [{name: home-ears}, {name: home-intent}]
EOF
start_shoal "$work/c.yaml"
ask() { curl -s -m 30 -D "$work/h" "$url/v1/audio/transcriptions" "$@"; }
for i in miss hit; do
    [[ $(ask -F file=@$wav/08-lights-on.wav) = '{"text":"lights on","usage":{"type":"duration","seconds":'?.???'}}' ]] || fail "the $i"
    tr -d '\r' <"$work/h" | grep -qi "^x-shoal-cache: $i" || fail "no $i: $(cat "$work/h")"
done
for f in 20-faint-hiss 21-fan 22-music 23-claps; do
    [[ $(ask -F file=@$wav/$f.wav) = '{"text":"","usage":'* ]] || fail "$f: $(ask -F file=@$wav/$f.wav)"
    ask -F file=@$wav/$f.wav -F response_format=verbose_json | grep -q '"language":"english".*"text":"","segments":\[\]' || fail "$f"
    ask -F file=@$wav/$f.wav -F stream=true | grep -q '"transcript.text.done","text":""' || fail "a stream of $f"
done
ask -F file=@$wav/20-faint-hiss.wav -F vad=false -D "$work/h" >/dev/null
grep -qi '^x-shoal-cache: miss' "$work/h" || fail "with and without a detector is one answer"
ask -F file=@$wav/08-lights-on.wav -F vad=maybe | grep -q '"param":"vad"' || fail "an unknown vad"
ask -F file=@$wav/08-lights-on.wav -F response_format=verbose_json >"$work/verbose"
grep -Eq '"temperature":0,"avg_logprob":-0\.[0-9]+,"compression_ratio":0\.[0-9]+,"no_speech_prob":[0-9.e-]*[1-9]' "$work/verbose" ||
    fail "the figures of a segment: $(cat "$work/verbose")"
[ "$(ask -F file=@$wav/08-lights-on.wav -F temperature=0.2 -F response_format=text | wc -l)" = 1 ] || fail "drawn"
grep -qi '^x-shoal-cache' "$work/h" && fail "a draw was kept"
ask -F file=@$wav/08-lights-on.wav -F model=home-intent | grep -q wrong_task || fail "another model"
head -c 1100000 /dev/zero >"$work/big"
ask -H Expect: -F file=@"$work/big" | grep -q request_too_large || fail "over 1 MB"
curl -s -H Expect: "$url/v1/classify" -d "{\"input\":\"$(head -c 5000 /dev/zero | tr '\0' a)\"}" |
    grep -q request_too_large || fail "sound's limit went to others"
curl -s -F file=@$wav/08-lights-on.wav -H 'Origin: http://evil.example' "$url/v1/audio/transcriptions" |
    grep -q origin_not_allowed || fail "a page of another site"
if (npm_clients audio.mjs) >"$work/npm.said"; then
    SHOAL_SOCKETS=$(dirname "$(grep -o 'unix:[^ "]*' "$log" | head -1 | cut -c6-)")
    export SHOAL_SOCKETS SHOAL_PROTO=$PWD/proto
    SHOAL_URL=$url SHOAL_WAV=$PWD/$wav timeout 120 node build/node/audio.mjs || fail "the openai client"
else
    echo "without the openai client: $(tail -1 "$work/npm.said")"
fi

# A sound file as the body; and files that are long enough to go on to the worker as they come.
[[ $(ask --data-binary @$wav/08-lights-on.wav -H 'Content-Type: audio/wav') = '{"text":"lights on",'* ]] || fail "a raw body"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"

big_wav() { # MEGABYTES FILE: zeros behind a header
    { printf 'RIFF\xff\xff\xff\x7fWAVEfmt \x10\0\0\0\1\0\1\0\x80\x3e\0\0\0\x7d\0\0\2\0\x10\0data\xff\xff\xff\x7f'
      head -c "$1"000000 /dev/zero; } >"$2"
}
memory() { grep "$1" "/proc/$(gateway)/status" | tr -dc 0-9; }
worker() { grep -o 'state=ready.* pid=[0-9]*' "$log" | tail -1 | grep -o '[0-9]*$'; }
cat >"$work/c.yaml" <<EOF
manifest: $PWD/models/models.json
limits: {max_audio_mb: 40}
models: [{name: home-ears}]
EOF
start_shoal "$work/c.yaml"
big_wav 1 "$work/1.wav"
big_wav 30 "$work/30.wav"
code=$(ask --http2-prior-knowledge -F model=home-ears -F file=@"$work/1.wav" -o "$work/a" -w '%{http_code}')
[ "$code" = 200 ] || fail "HTTP/2: $code $(cat "$work/a")"
ask --limit-rate 1M -F file=@"$work/1.wav" -F model=home-ears -F response_format=json | cmp -s - "$work/a" ||
    fail "slowly, with the fields behind the file"
tr -d '\r' <"$work/h" | grep -qi '^x-shoal-cache: hit' || fail "the same file in another way was heard again"
head -c 60000000 /dev/zero | ask -T - -X POST -H 'Content-Type: audio/wav' | grep -q request_too_large || fail "over 40 MB"

# Memory is bounded by what is kept for another worker, however much comes.
before=$(memory VmRSS)
uploads=()
for i in 1 2 3 4 5 6 7 8; do
    ask --limit-rate 20M -m 3 -H 'Cache-Control: no-cache' -F model=home-ears -F file=@"$work/30.wav" >/dev/null &
    uploads+=($!)
done
wait "${uploads[@]}"
grown=$(($(memory VmHWM) - before))
echo "8 uploads of 30 MB: $grown KiB more"
[ "$grown" -lt 100000 ] || fail "8 uploads took $grown KiB"
stop_shoal

# A worker dies in the middle: under 8 MiB another gets all from the beginning, over it the client is told.
start_shoal "$work/c.yaml"
die_after() { # SECONDS FILE RATE
    ask -m 25 --limit-rate "$3" -H 'Cache-Control: no-cache' -F model=home-ears -F file=@"$2" >"$work/a" &
    local client=$!
    sleep "$1"
    kill -9 "$(worker)"
    wait $client
}
die_after 0.7 "$work/1.wav" 700k
grep -q '"text"' "$work/a" || fail "a worker's death under 8 MiB: $(cat "$work/a")"
die_after 3 "$work/30.wav" 8M
grep -q 'send the request again' "$work/a" || fail "a worker's death over 8 MiB: $(cat "$work/a")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"

# A stream's events have ids: behind each of them another gateway goes on with the same bytes.
{ head -c 44 "$work/1.wav"; for f in "$wav"/*.wav; do tail -c +45 "$f"; done; head -c 200000 /dev/zero; } >"$work/long.wav"
hear() { ask -N -F model=home-ears -F stream=true -F file=@"$work/long.wav" "$@"; }
start_shoal "$work/c.yaml"
hear >"$work/whole"
stop_shoal
mapfile -t ids < <(sed -n 's/^id: //p' "$work/whole")
[ ${#ids[@]} -ge 3 ] && [ ${#ids[@]} -eq "$(grep -c ^data: "$work/whole")" ] || fail "events without ids: $(cat "$work/whole")"
start_shoal "$work/c.yaml" # which has never heard of it
for i in "${!ids[@]}"; do
    { head -n $((3 * (i + 1))) "$work/whole"; hear -H "Last-Event-ID: ${ids[i]}"; } | cmp - "$work/whole" ||
        fail "behind event $i: $(hear -H "Last-Event-ID: ${ids[i]}")"
done
hear | cmp - "$work/whole" || fail "asked from the beginning again"
hear -F language=en -H "Last-Event-ID: ${ids[0]}" | grep -q other_request || fail "another request went on"
hear -F temperature=0.5 -H "Last-Event-ID: ${ids[0]}" | grep -q 'cannot be gone on with' || fail "a draw went on"
hear -F temperature=0.5 | grep -q '^id:' && fail "a draw has ids"
hear -H "Last-Event-ID: x${ids[0]#?}" | grep -q 'no event id' || fail "a forged id was taken"
curl -s "$url/metrics" | grep -q '^shoal_streams_resumed_total{model="home-ears"} [1-9]' || fail "no metric of resumed streams"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
