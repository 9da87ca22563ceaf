#!/usr/bin/env bash
# make install, then build and run examples/embed.c against what was installed, beside a program's own
# functions of the library's inner names.
source "$(dirname "$0")/lib.sh"
cmake --install "$(dirname "$SHOAL_BIN")" --prefix "$work/prefix" >"$log" 2>&1 || fail "make install"
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig

# ---- the library defines what shoal.h declares, and nothing else
nm -g --defined-only "$work/prefix/lib/libshoal.a" | awk 'NF == 3 { print $3 }' | sort >"$work/defined"
cc -E -P "$work/prefix/include/shoal.h" | grep -oE '\bshoal_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u >"$work/declared"
[ -s "$work/declared" ] || fail "shoal.h declares nothing"
diff "$work/declared" "$work/defined" >"$log" || fail "declared (<) and defined (>) differ: $(head -5 "$log" | tr '\n' ' ')"

# ---- the shared one has a name of its own and the same symbols
shared=$work/prefix/lib/libshoal.so
readelf -d "$shared" | grep -qE 'SONAME.*\[libshoal\.so\.[0-9]+\]' || fail "libshoal.so has no versioned soname"
nm -D --defined-only "$shared" | awk '$2 == "T" { sub("@.*", "", $3); print $3 }' | sort >"$work/exported"
diff "$work/declared" "$work/exported" >"$log" || fail "declared (<) and exported (>) differ: $(head -5 "$log" | tr '\n' ' ')"

# ---- it links with what pkg-config says, shared and static, and with a host that has names like its own
cat >"$work/host.c" <<'END'
int json_parse(void) { return 1; }
int buf_append(void) { return 2; }
int session_new(void) { return 3; }
END
export LD_LIBRARY_PATH=$work/prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for how in shared static; do
    libs=$(pkg-config --libs shoal)
    [ $how = shared ] || libs="$work/prefix/lib/libshoal.a $(pkg-config --static --libs shoal | sed 's/-lshoal //')"
    # shellcheck disable=SC2046,SC2086
    cc -Wall -Wextra -Werror -std=c11 examples/embed.c -c -o "$work/embed.o" $(pkg-config --cflags shoal) 2>"$log" &&
        cc -c "$work/host.c" -o "$work/host.o" 2>"$log" &&
        cc "$work/embed.o" "$work/host.o" $libs -o "$work/embed.$how" 2>"$log" ||
        fail "examples/embed.c does not build with pkg-config, $how: $(head -3 "$log")"
    "$work/embed.$how" models/home-embed.gguf "wake me at seven" "set an alarm for 7 am" "play some jazz" >"$work/out.$how" ||
        fail "embed, $how"
done
readelf -d "$work/embed.shared" | grep -q 'NEEDED.*libshoal\.so' || fail "the program is not linked with the shared library"
readelf -d "$work/embed.static" | grep -q 'NEEDED.*libshoal\.so' && fail "the program is linked with the shared library"
cmp -s "$work/out.shared" "$work/out.static" || fail "the shared and the static library differ"
mv "$work/out.shared" "$work/out"
alarm=$(sed -n 1p "$work/out" | cut -d' ' -f1)
jazz=$(sed -n 2p "$work/out" | cut -d' ' -f1)
awk -v a="$alarm" -v j="$jazz" 'BEGIN { exit !(a > j && a <= 1.001) }' || fail "similarities: $alarm $jazz"

[ -x "$work/prefix/bin/shoal" ] && "$work/prefix/bin/shoal" version >/dev/null || fail "the installed program"
[ -f "$work/prefix/share/man/man1/shoal.1" ] || fail "no man page"

# ---- the installed program finds its own configuration and models from anywhere
installed=$work/prefix/bin/shoal
mkdir "$work/elsewhere"
if [ ! -e /etc/shoal/shoal.yaml ]; then
    (cd "$work/elsewhere" && exec "$installed" serve --port 0 >"$work/ready" 2>"$log") &
    server=$!
    for _ in $(seq 400); do
        grep -qs '^ready http://.* replicas=5 failed=0' "$work/ready" && break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    grep -q '^ready http://.* replicas=5 failed=0' "$work/ready" || fail "the installed shoal serve: $(tail -1 "$log")"
    stop_shoal
    [ "$stopped" -eq 0 ] || fail "the installed shoal serve ends with $stopped"
    # the shipped configuration from another folder: what it names is found beside the program
    mkdir "$work/etc" && cp "$work/prefix/share/shoal/shoal.yaml" "$work/etc/"
    (cd "$work/elsewhere" && "$installed" serve --check -c "$work/etc/shoal.yaml") >"$work/out2" 2>&1 ||
        fail "the shipped configuration elsewhere: $(cat "$work/out2")"
    # what is fetched is not put where a package has its files
    before=$(ls -la "$work/prefix/share/shoal/models")
    digest=$(printf 'no model' | sha256sum | cut -d' ' -f1)
    mkdir -p "$work/own/store"
    printf '{"models":[{"name":"mine","file":"mine.gguf","sha256":"%s","source":"https://example.org/mine.gguf"}]}' "$digest" >"$work/own/store/models.json"
    printf 'no model' >"$work/own/store/mine.gguf"
    (cd "$work/elsewhere" && SHOAL_STATE=$work/own exec "$installed" serve --port 0 >"$work/ready" 2>"$log") &
    server=$!
    for _ in $(seq 400); do grep -qs '^ready http' "$work/ready" && break; sleep 0.05; done
    url=$(grep -o 'http://[^ ]*' "$work/ready")
    curl -s "$url/v1/models/load" -d '{"model":"mine"}' | grep -q 'mine.gguf: not a GGUF file' && grep -q "path=$work/own/store/mine.gguf" "$log" || fail "the store of an installed server: $(tail -1 "$log")"
    curl -s -X DELETE "$url/v1/models/mine" | grep -q '"deleted":true' && [ ! -e "$work/own/store/mine.gguf" ] || fail "it is not its store"
    stop_shoal
    (cd "$work/elsewhere" && SHOAL_STATE=$work/own "$installed" pull https://127.0.0.1:1/x.gguf) >"$work/out2" 2>&1 && fail "nobody answers, and yet"
    [ "$before" = "$(ls -la "$work/prefix/share/shoal/models")" ] || fail "the package's folder has changed"
    # a program that lies about takes nothing from the folder above it
    mkdir "$work/x" && cp "$installed" "$work/x/shoal" && cp -r "$work/prefix/share/shoal/models" "$work/models"
    cp "$work/prefix/share/shoal/shoal.yaml" "$work/shoal.yaml"
    (cd "$work/elsewhere" && "$work/x/shoal" models) >"$work/out2" 2>&1 && fail "it takes any folder above: $(cat "$work/out2")"
    grep -q 'no models.json found' "$work/out2" || fail "no reason: $(cat "$work/out2")"
    (cd "$work/elsewhere" && "$work/x/shoal" serve --port 0) >"$work/out2" 2>&1
    [ $? -eq 2 ] || fail "it takes any configuration above"
    rm "$work/prefix/share/shoal/shoal.yaml"
    (cd "$work/elsewhere" && "$installed" serve --port 0) >"$work/out" 2>&1
    [ $? -eq 2 ] && grep -qF "looked for ./shoal.yaml, /etc/shoal/shoal.yaml and $work/prefix/share/shoal/shoal.yaml" "$work/out" ||
        fail "without a configuration it says: $(cat "$work/out")"
fi
echo "embed.c: alarm $alarm, jazz $jazz; $(wc -l <"$work/defined") symbols"
