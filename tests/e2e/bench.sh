#!/usr/bin/env bash
# What `shoal bench` says of a model: the rows that were asked for, with shares of limits; and what it refuses. No
# speed is held to anything.
source "$(dirname "$0")/lib.sh"
bench() { "$SHOAL_BIN" bench "$@" -t 1 -r 2; }
rows() { grep -o '"test":"[^"]*"' | cut -d'"' -f4 | paste -sd ' '; }

# ---- a generator: prompts, replies, depths; streams only when nobody chose
bench home-chat-s -p 8,20 -n 4 -d 32 --json >"$work/out" || fail "bench of a generator"
[ "$(rows <"$work/out")" = "pp8 pp20 tg4 pp8@d32 pp20@d32 tg4@d32" ] || fail "rows: $(rows <"$work/out")"
node=$(command -v node || true)
[ -z "$node" ] || node -e '
    const o = JSON.parse(require("fs").readFileSync(process.argv[1]));
    const bad = o.results.filter(r => !(r.tokens_per_s > 0 && r.min_tokens_per_s <= r.tokens_per_s &&
        r.tokens_per_s <= r.max_tokens_per_s && r.runs == 2 && r.share_of_reading > 0 && r.share_of_multiply_adds > 0));
    if (bad.length) throw new Error(JSON.stringify(bad));
    if (!(o.limits.multiply_adds_per_s > 0 && o.threads == 1 && /^[0-9a-f]{64}$/.test(o.model.sha256) && o.isa &&
        o.shoal.version && o.shoal.commit && o.machine.cores > 0 && o.machine.memory_bytes > 0)) throw new Error("head");
    const [near, far] = ["tg4", "tg4@d32"].map(t => o.results.find(r => r.test == t));
    if (!(far.bytes > near.bytes && far.multiply_adds > near.multiply_adds)) throw new Error("depth costs nothing");
' "$work/out" || fail "JSON of a generator"
bench home-chat-s -n 4 -p 0 --streams 1,3 >"$work/out" || fail "streams"
grep -qE '^tg4 +[0-9.]+ ' "$work/out" && grep -qE '^streams_3 +[0-9.]+ ' "$work/out" || fail "$(cat "$work/out")"
grep -qE '^pp' "$work/out" && fail "-p 0 measures a prompt"
grep -qE '^shoal [0-9.]+ \(commit [0-9a-f]{7,}(-modified)?|^shoal [0-9.]+ \(commit unknown\)' "$work/out" ||
    fail "no commit: $(head -1 "$work/out")"

bench home-chat-s -n 4 -p 0 --drafts --json >"$work/out" && [ "$(rows <"$work/out")" = tg4 ] || fail "--drafts"

# ---- an encoder
[ "$(bench home-intent --shapes 1x8,3x5 --json | rows)" = "enc 1x8 enc 3x5" ] || fail "rows of an encoder"
bench home-intent --shapes 1x100000 2>/dev/null && fail "a shape of 100000 tokens is taken"
bench home-intent --shapes 1x8000,1x4 2>"$work/err" | grep -q '^enc 1x4 ' || fail "the shape behind one too long"
grep -q '1x8000 is left out' "$work/err" || fail "nothing said of a shape that is too long"

# ---- encoder-decoders: a source of tokens or sound, and replies behind it
t5=tests/data/hf/t5-small-relu
[ "$(bench $t5 -p 8,20 -n 4 --json | rows)" = "src8 tg4@src8 src20 tg4@src20" ] || fail "rows of an encoder-decoder"
bench home-ears --seconds 2,5 -n 4,0 --json >"$work/out" || fail "bench of speech"
[ "$(rows <"$work/out")" = "snd2s tg4@snd2s snd5s tg4@snd5s" ] || fail "rows of speech: $(rows <"$work/out")"
[ "$(grep -o '"sound_s":[0-9.]*' "$work/out" | paste -sd ' ')" = '"sound_s":2.00 "sound_s":5.00' ] || fail "no seconds of sound"
[ -z "$node" ] || node -e '
    const o = JSON.parse(require("fs").readFileSync(process.argv[1]));
    const [a, ta, b, tb] = o.results;
    if (!(b.bytes == a.bytes + (tb.bytes - ta.bytes) / 4 && b.multiply_adds > 2.5 * a.multiply_adds && a.times_real_time > 0 &&
        tb.multiply_adds > ta.multiply_adds && ta.times_real_time === undefined)) throw new Error(JSON.stringify(o.results));
' "$work/out" || fail "JSON of speech"
[ "$(bench home-ears --json | rows)" = "snd5s tg62@snd5s" ] || fail "more sound than it hears is no row that nobody asked for"

# ---- regrouped
bench home-chat-s -p 8 -n 0 --regroup s8_128 >"$work/out" && grep -q ': llama S8_128, ' "$work/out" || fail "$(cat "$work/out")"

# ---- where the time goes
"$SHOAL_BIN" profile home-chat-s -p 40 -n 6 -t 1 -r 2 --svg "$work/p.svg" --json >"$work/out" || fail "profile"
[ -z "$node" ] || node -e '
    const o = JSON.parse(require("fs").readFileSync(process.argv[1]));
    const near = (a, b) => Math.abs(a - b) < 1e-4 * b, sum = (l) => l.reduce((a, x) => a + x.ms, 0);
    if (o.phases.map((p) => p.phase + p.tokens).join() !== "prefill40,decode6") throw new Error("phases");
    for (const p of o.phases)
        if (!near(sum(p.kernels), p.ms) || !near(sum(p.layers), p.ms)) throw new Error("sums of " + p.phase);
    if (!(o.limits.read_bytes_per_s > 0 && o.limits.multiply_adds_per_s > 0)) throw new Error("limits");
' "$work/out" || fail "JSON of profile"
grep -q '</svg>' "$work/p.svg" || fail "profile --svg"
"$SHOAL_BIN" profile home-intent -p 8 -t 1 -r 1 --layers >"$work/out" || fail "profile of an encoder"
grep -q '^encode: 8 tokens in 1 step' "$work/out" && grep -q ' around them$' "$work/out" || fail "$(cat "$work/out")"

# ---- what is refused, before anything is printed
refused() {
    local status=$1 why=$2
    shift 2
    bench "$@" >"$work/out" 2>"$work/err"
    [ $? -eq "$status" ] || fail "bench $*: another status than $status"
    grep -q -- "$why" "$work/err" || fail "bench $*: $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "bench $* printed before it refused"
}
refused 2 '--prompt wants up to 16' home-chat-s -p 8,
refused 2 '--prompt wants up to 16' home-chat-s -p ''
refused 2 '--generate wants' home-chat-s -n 1,x
refused 2 '--depth wants' home-chat-s -d -1
refused 2 '--depth wants' home-chat-s -d 99999999999999999999999999
refused 2 '--prompt wants' home-chat-s -p 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1
refused 2 '--shapes wants' home-intent --shapes 1x
refused 2 '--shapes wants' home-intent --shapes 0x8
refused 1 'context has' home-chat-s -p 100000
for args in '' 'home-chat-s --request x' '--request a&b'; do
    "$SHOAL_BIN" profile $args >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] && grep -qE 'name either|x-request-id' "$work/err" || fail "profile $args: $(cat "$work/err")"
done
"$SHOAL_BIN" profile home-chat-s -p 900000 2>"$work/err" && fail "a profile beyond the context"
grep -q 'context has' "$work/err" || fail "$(cat "$work/err")"
refused 1 'for classify-image' tests/data/hf/vit-tiny
refused 1 'hears 8 s at once' home-ears --seconds 9
refused 1 'longest reply is 100 tokens' home-ears -n 100
refused 2 'no type that matrices can be regrouped to' home-chat-s --regroup q4_0
echo "rows, shares and refusals"
