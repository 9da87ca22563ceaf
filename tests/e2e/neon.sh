#!/usr/bin/env bash
# The AArch64 kernels under qemu; skipped where the cross compiler, qemu or the arm64 libraries cannot be had.
cd "$(dirname "$0")/../.."
exec scripts/neon.sh
