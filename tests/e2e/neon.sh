#!/usr/bin/env bash
# The AArch64 kernels under qemu; skipped where the cross compiler, qemu or the arm64 libraries cannot be had.
# early: it builds a tree and takes minutes, which should not be the last ones
# long: every size of the kernels' tests, and the whole program
cd "$(dirname "$0")/../.."
[ -n "${SHOAL_LONG:-}" ] && how=whole || how=short
exec scripts/neon.sh $how
