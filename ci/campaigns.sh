#!/usr/bin/env bash
# The crash campaigns and stress tests that are marked `#[ignore]` for their length.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_cargo
# Overflow checks and assertions stay on: they are half of what a campaign checks.
CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
    cargo test --release --workspace --no-fail-fast --lib --bins --tests -- --ignored --nocapture
