#!/usr/bin/env bash
# Packed weights: written once, mapped by the next start and by every replica, refused when they are not right, and
# bounded. The answers never change.
source "$(dirname "$0")/lib.sh"
store=$work/store

model=$PWD/models/home-chat-s.gguf

configure() { # REPLICAS KEYS...
    {
        printf 'packed:\n  folder: %s\n  min_mb: 0\n' "$store"
        printf '  %s\n' "${@:2}"
        printf 'models:\n  - {name: chat, path: %s, replicas: %s}\n' "$model" "$1"
    } | grep -v '^ *$' >"$work/packed.yaml"
}

ask() {
    curl -sf "$url/v1/completions" -d '{"model":"chat","prompt":"turn on the light","max_tokens":12,"temperature":0}' |
        grep -o '"text":"[^"]*"' || fail "no answer"
}

# images N: wait until so many are there.
images() {
    for _ in $(seq 200); do
        [ "$(find "$store" -name '*.packed' 2>/dev/null | wc -l)" = "$1" ] && return
        sleep 0.05
    done
    fail "$(find "$store" -name '*.packed' | wc -l) images instead of $1"
}

workers() { pgrep -P "$server" -f 'shoal worker'; }
maps() { grep -c '\.packed' "/proc/$1/maps"; }

# ---- the first start writes, the second maps
configure 1
start_shoal "$work/packed.yaml"
first=$(ask)
images 1
[ "$(stat -c %a "$store")" = 700 ] || fail "the folder is not its owner's alone"
[ "$(stat -c %a "$store"/*.packed)" = 600 ] || fail "an image is not its owner's alone"
stop_shoal
[ "$stopped" = 0 ] || fail "exit status $stopped"

# ---- two replicas read one file, and go on reading it
configure 2
start_shoal "$work/packed.yaml"
[ "$(ask)" = "$first" ] || fail "another answer from packed weights"
for pid in $(workers); do [ "$(maps "$pid")" -gt 0 ] || fail "a replica does not map the image"; done
rm "$store"/*.packed
[ "$(ask)" = "$first" ] || fail "another answer after the image was removed"
stop_shoal

# ---- a damaged one is refused with a line and replaced
configure 1
start_shoal "$work/packed.yaml"
images 1
stop_shoal
image=$(ls "$store"/*.packed)
printf 'x' | dd of="$image" bs=1 seek=100 conv=notrunc status=none
start_shoal "$work/packed.yaml"
grep -q 'event=image_refused' "$log" || fail "nobody says that the image is damaged"
[ "$(ask)" = "$first" ] || fail "another answer beside a damaged image"
for _ in $(seq 200); do
    [ "$(head -c 101 "$image" | tail -c 1)" = x ] || break
    sleep 0.05
done
stop_shoal
start_shoal "$work/packed.yaml"
grep -q 'event=image_refused' "$log" && fail "the image was not replaced"
stop_shoal

# ---- damage among the weights is met when all is compared
printf 'x' | dd of="$image" bs=1 seek=$((3 << 20)) conv=notrunc status=none
configure 1 'check: true'
start_shoal "$work/packed.yaml"
grep -q 'event=image_refused.*weights are damaged' "$log" || fail "check: true misses damaged weights"
[ "$(ask)" = "$first" ] || fail "another answer beside damaged weights"
stop_shoal

# ---- what cannot be written is said, and does no harm
chmod 770 "$store"
rm -f "$image"
configure 1
start_shoal "$work/packed.yaml"
[ "$(ask)" = "$first" ] || fail "another answer without an image"
for _ in $(seq 100); do
    grep -q 'event=image_not_kept.*chmod go-w' "$log" && break
    sleep 0.05
done
grep -q 'event=image_not_kept.*chmod go-w' "$log" || fail "nobody says that the folder is not used"
stop_shoal
chmod 700 "$store"

# ---- limits
configure 1 'max_mb: 1'
start_shoal "$work/packed.yaml"
for _ in $(seq 100); do
    grep -q "event=image_not_kept.*larger than the store's limit of 1 MB" "$log" && break
    sleep 0.05
done
grep -q 'event=image_not_kept' "$log" || fail "nobody says that the image is too large"
stop_shoal
configure 1 'max_mb: 0'
start_shoal "$work/packed.yaml"
[ "$(ask)" = "$first" ] || fail "another answer without a store"
stop_shoal
images 0

# ---- a folder's are kept as well, and known again when another file of it changes
model=$work/folder
cp -r tests/data/hf/llama-gqa "$model"
sleep 2.1 # a file this young is not sure to be told apart from its next state
for round in 1 2 3; do
    configure 1
    start_shoal "$work/packed.yaml"
    answer=$(ask)
    images 1
    [ "$answer" = "${of_folder:=$answer}" ] || fail "another answer from a folder's packed weights"
    [ $round = 1 ] || [ "$(maps "$(workers)")" -gt 0 ] || fail "a folder's image is not mapped"
    stop_shoal
    touch "$model/tokenizer.json"
done

# ---- what is there can be seen, and removed under a server that runs
configure 1
start_shoal "$work/packed.yaml"
listed=$("$SHOAL_BIN" models packed -c "$work/packed.yaml") || fail "models packed: $listed"
grep -Eq '^folder +BF16 +all +[0-9.]+ +[0-9]+ s +ready +[0-9a-f]{16}$' <<<"$listed" || fail "models packed shows: $listed"
grep -q "^1 image, .* in $store$" <<<"$listed" || fail "models packed ends: $listed"
json=$("$SHOAL_BIN" models packed folder --folder "$store" --json)
[ "$(grep -o '"state": "[a-z]*"' <<<"$json")" = '"state": "ready"' ] || fail "models packed --json: $json"
"$SHOAL_BIN" models packed --folder "$store" other 2>"$work/none" && fail "images of a model that is not there"
grep -q 'no packed weights of "other"' "$work/none" || fail "models packed other: $(cat "$work/none")"
digest=$(grep -Eo '[0-9a-f]{16}$' <<<"$listed")
for few in "" "${digest:0:1}" "${digest:0:7}"; do # which might be the beginning of many
    "$SHOAL_BIN" models packed --folder "$store" --clear "$few" 2>/dev/null && fail "\"$few\" was enough to clear by"
done
"$SHOAL_BIN" models packed --folder "$store" "${digest:0:8}" | grep -q '^1 image,' || fail "eight digits of $digest were not enough"
[ "$("$SHOAL_BIN" models packed --folder "$work/nowhere" --json | grep -o '"images": \[\]')" ] || fail "a folder that is not there"
other=$store/0123456789abcdef-01234567.pace # what another model's steps taught, which has no image
touch "$other" "$store/$digest-01234567.pace" "$store/my.pacemaker"
"$SHOAL_BIN" models packed --folder "$store" --clear "${digest:0:8}" | grep -q '^1 image removed' || fail "--clear says nothing"
[ -e "$other" ] && [ "$(echo "$store"/*.pace)" = "$other" ] || fail "--clear of one model left $(echo "$store"/*.pace)"
"$SHOAL_BIN" models packed --folder "$store" --clear | grep -q '^0 images removed' || fail "--clear of nothing says nothing"
[ ! -e "$other" ] || fail "--clear left $other"
[ -e "$store/my.pacemaker" ] || fail "--clear took a file that is not ours"
images 0
[ "$(ask)" = "$of_folder" ] || fail "another answer after the store was cleared"
stop_shoal

# ---- regrouped, a model has an image of its own beside the other, and says so; pins are the file's
model=$PWD/models/home-chat-s.gguf
rm -f "$store"/*
pin=$(sha256sum "$model" | cut -d' ' -f1)
for round in 1 2; do
    for form in off s8_128; do
        configure 1
        sed -i "s|replicas: 1|replicas: 1, sha256: $pin, regroup: $form|" "$work/packed.yaml"
        start_shoal "$work/packed.yaml"
        ask >"$work/$form.$round"
        [ $round = 2 ] || images $([ $form = off ] && echo 1 || echo 2)
        grep -q "quantisation=$([ $form = off ] && echo Q8_0 || echo S8_128) " "$log" || fail "regroup: $form is not said"
        [ $round = 1 ] || [ "$(maps "$(workers)")" -gt 0 ] || fail "regroup: $form maps no image"
        stop_shoal
    done
done
cmp -s "$work/off.1" "$work/off.2" && cmp -s "$work/s8_128.1" "$work/s8_128.2" || fail "images change answers"
[ "$("$SHOAL_BIN" models packed --folder "$store" | grep -c ' ready ')" = 2 ] || fail "a form's image is not ready to be used"
model=$work/folder

# ---- as it would be without one
configure 1 'max_mb: 0'
start_shoal "$work/packed.yaml"
[ "$(ask)" = "$of_folder" ] || fail "a folder's packed weights give another answer"
stop_shoal
echo "packed: starts, replicas, damage, limits and folders"
