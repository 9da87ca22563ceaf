#!/usr/bin/env bash
# make install, then build and run examples/embed.c against what was installed.
source "$(dirname "$0")/lib.sh"
cmake --install "$(dirname "$SHOAL_BIN")" --prefix "$work/prefix" >"$log" 2>&1 || fail "make install"
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
cc -Wall -Wextra -Werror -std=c11 examples/embed.c $(pkg-config --cflags --libs --static shoal) -o "$work/embed" 2>"$log" || fail "examples/embed.c does not build"
"$work/embed" models/home-embed.gguf "wake me at seven" "set an alarm for 7 am" "play some jazz" >"$work/out" || fail "embed"
alarm=$(sed -n 1p "$work/out" | cut -d' ' -f1)
jazz=$(sed -n 2p "$work/out" | cut -d' ' -f1)
awk -v a="$alarm" -v j="$jazz" 'BEGIN { exit !(a > j && a <= 1.001) }' || fail "similarities: $alarm $jazz"
[ -x "$work/prefix/bin/shoal" ] && "$work/prefix/bin/shoal" version >/dev/null || fail "the installed program"
[ -f "$work/prefix/share/man/man1/shoal.1" ] || fail "no man page"
echo "embed.c: alarm $alarm, jazz $jazz"
