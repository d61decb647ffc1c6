#!/usr/bin/env bash
# All interleavings of a few threads in the lock and in the list of announcements (crates/durum/tests/loom.rs).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_cargo
# Its own directory: the flag would rebuild everything in the usual one, twice.
RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_TARGET_DIR=$CARGO_TARGET_DIR/loom \
    cargo test --quiet --profile test -p durum --test loom
