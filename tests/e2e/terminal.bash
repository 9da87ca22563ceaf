# terminal.bash: shoal at a terminal that script makes, and what a test types there. Source it behind lib.sh.
screen=$work/screen
typist=

# at_terminal ARGS...: shoal ARGS on a terminal of $columns (80) columns whose keys are what is written to fd 9
at_terminal() {
    rm -f "$work/keys" && mkfifo "$work/keys"
    : >"$screen"
    script -qefc "stty cols ${columns:-80}; '$SHOAL_BIN' $*" "$screen" <"$work/keys" >/dev/null 2>&1 &
    typist=$!
    exec 9>"$work/keys"
    seen=1
    await '^> '
}
# await PATTERN: until the screen has it, behind what earlier calls found
await() {
    local hit
    for _ in $(seq 200); do
        hit=$(tail -c +"$seen" "$screen" | LC_ALL=C grep -aobE -e "$1" | head -1)
        if [ -n "$hit" ]; then
            seen=$((seen + ${hit%%:*} + $(printf %s "${hit#*:}" | wc -c)))
            return
        fi
        kill -0 "$typist" 2>/dev/null || break
        sleep 0.05
    done
    fail "the screen does not show $1: $(tail -c 400 "$screen" | cat -v)"
}
keys() { printf "$1" >&9; }
# stop_reply TEXT: Ctrl-C in the middle of the reply to TEXT, which lists numbers; asked again where that was quicker
stop_reply() {
    local said="$1\r"
    for _ in $(seq 10); do
        keys "$said"
        said='/retry\r'
        await '[0-9]+, *[0-9]+'
        keys '\003'
        await '[0-9]+ tokens'
        await '^> '
        grep -q 'stopped: [0-9]* tokens' "$screen" && return
    done
    fail "Ctrl-C stopped no reply: $(tail -c 400 "$screen" | cat -v)"
}
leave() {
    keys '\004'
    exec 9>&-
    wait "$typist"
    [ $? -eq 0 ] || fail "shoal chat ends with $? behind Ctrl-D: $(tail -c 400 "$screen" | cat -v)"
}
