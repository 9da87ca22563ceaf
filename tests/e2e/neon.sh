#!/usr/bin/env bash
# The AArch64 kernels under qemu; skipped where the cross compiler, qemu or the arm64 libraries cannot be had.
# early: it builds a tree and takes minutes, which should not be the last ones
# long: it builds a second tree
cd "$(dirname "$0")/../.."
exec scripts/neon.sh
