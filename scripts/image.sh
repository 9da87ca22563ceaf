#!/usr/bin/env bash
# Pack what a container of Shoal holds into build/image/rootfs.tar: the program without its symbols, the libraries that it links
# with, its configuration and the models that this names. Then build the image where podman or docker is.
set -euo pipefail
umask 022
PATH=$PATH:/usr/sbin:/sbin # ldconfig
cd "$(dirname "$0")/.."
image=${SHOAL_IMAGE_DIR:-build/image}
rm -rf "$image"
root=$image/rootfs
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
chmod 700 "$root/var/lib/shoal"
tar -C "$root" --owner=0 --group=0 --exclude=./var/lib/shoal -cf "$image/rootfs.tar" .
tar -C "$root" --owner=65532 --group=65532 --no-recursion -rf "$image/rootfs.tar" ./var/lib/shoal
rm -r "$root"
size() { awk '{ printf "%.1f", $1 / 1e6 }'; }
echo "image: $(wc -c <"$image/rootfs.tar" | size) MB in $image/rootfs.tar, $(gzip -6 <"$image/rootfs.tar" | wc -c | size) MB packed"
[ -z "${SHOAL_IMAGE_ONLY:-}" ] || exit 0
for tool in podman docker; do
    command -v "$tool" >/dev/null || continue
    "$tool" build -q -t localhost/shoal -f deploy/container/Containerfile "$image"
    exit
done
echo "image: neither podman nor docker is here to build the image: podman build -t localhost/shoal -f deploy/container/Containerfile $image"
