#!/usr/bin/env bash
# Runs the tests of the crates that make no system calls under Miri (undefined behaviour, aliasing).
# Needs nightly Rust with the miri component.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

have_nightly || { say "no nightly toolchain (rustup toolchain install nightly)" && exit 77; }
cargo +nightly miri --version >/dev/null 2>&1 ||
    { say "no Miri (rustup +nightly component add miri rust-src)" && exit 77; }

# Addresses in durum are numbers from the media: integer-to-pointer casts are its nature. Property
# tests read their seeds from files, which the isolation would refuse; few cases, Miri is slow.
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-permissive-provenance -Zmiri-disable-isolation}"
PROPTEST_CASES=${PROPTEST_CASES:-4} cargo +nightly miri test -p durum-format --lib
