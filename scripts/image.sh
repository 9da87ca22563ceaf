#!/usr/bin/env bash
# Put what a container of Shoal holds into build/image: the program without its symbols, the libraries that it links
# with, its configuration and the models that this names. Then build the image where podman or docker is.
set -euo pipefail
cd "$(dirname "$0")/.."
root=${SHOAL_IMAGE:-build/image}
rm -rf "$root"
mkdir -p "$root"/{usr/bin,etc/shoal,etc/ssl/certs,usr/share/shoal,dev,proc,tmp,var/lib/shoal}
chmod 1777 "$root/tmp"
strip -o "$root/usr/bin/shoal" build/shoal
ldd build/shoal | grep -o '/[^ ]*' | sort -u | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
for library in libnss_files.so.2 libnss_dns.so.2 libresolv.so.2; do # libc opens these to look names up
    found=$(ldconfig -p | sed -n "s|.*$library (.*x86-64.*=> ||p; s|.*$library (.*AArch64.*=> ||p" | head -1)
    [ -z "$found" ] || { mkdir -p "$root$(dirname "$found")" && cp -L "$found" "$root$found"; }
done
cp shoal.yaml "$root/etc/shoal/"
cp -r lexicons "$root/usr/share/shoal/"
mkdir "$root/usr/share/shoal/models"
cp models/*.json models/NOTICE models/*.jinja "$root/usr/share/shoal/models/"
sed -n 's/^  - name: \(home-[a-z-]*\)$/\1/p' shoal.yaml | sort -u | while read -r name; do
    [ ! -f "models/$name.gguf" ] || cp "models/$name.gguf" "$root/usr/share/shoal/models/"
done
[ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
printf 'root:x:0:0::/:\nshoal:x:65532:65532::/var/lib/shoal:\n' >"$root/etc/passwd"
printf 'root:x:0:\nshoal:x:65532:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
[ "$(id -u)" -ne 0 ] || chown 65532:65532 "$root/var/lib/shoal"
chmod 700 "$root/var/lib/shoal"
echo "image: $(du -sm --apparent-size "$root" | cut -f1) MB in $root, $(tar -C "$root" -c . | gzip -6 | wc -c | awk '{ printf "%.1f", $1 / 1e6 }') MB packed"
[ -z "${SHOAL_IMAGE_ONLY:-}" ] || exit 0
for tool in podman docker; do
    command -v "$tool" >/dev/null || continue
    "$tool" build -q -t shoal -f deploy/container/Containerfile "$root"
    exit
done
echo "image: neither podman nor docker is here to build the image: podman build -t shoal -f deploy/container/Containerfile $root"
