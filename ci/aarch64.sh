#!/usr/bin/env bash
# durum-persist for AArch64: linted and tested, its instructions run by QEMU's user-mode emulation.
#
# Emulation has no caches of its own: that a write-back is missing does not show here. What shows is that
# the instructions assemble, execute and are counted, and that the simulator works on this architecture.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

target=aarch64-unknown-linux-gnu
need_cargo
if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
    refuse "No AArch64 toolchain. Install it with: sudo apt-get install --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
fi
if ! command -v rustup >/dev/null || ! rustup target add "$target" >/dev/null 2>&1; then
    warn "Skipped: the Rust library for $target is not here. Get it with: rustup target add $target"
    exit 77
fi

run=(qemu-aarch64-static -L /usr/aarch64-linux-gnu)
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
cargo clippy --quiet -p durum-persist --target "$target" -- -D warnings

# A Cortex-A72 has no DC CVAP, so this runs DC CVAC.
say "-- DC CVAC"
CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="${run[*]} -cpu cortex-a72" \
    cargo test --quiet -p durum-persist --target "$target" --lib --tests

# User-mode emulation before QEMU 8.2 announces DC CVAP and then rejects it as an illegal instruction.
version=$(qemu-aarch64-static --version | sed -n 's/.*version \([0-9]*\.[0-9]*\).*/\1/p')
if [ "$(printf '%s\n' 8.2 "$version" | sort -V | head -n 1)" = 8.2 ]; then
    say "-- DC CVAP"
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="${run[*]} -cpu max" \
        cargo test --quiet -p durum-persist --target "$target" --lib --tests
else
    say "-- DC CVAP: assembled, not run (QEMU $version is older than 8.2)"
fi
