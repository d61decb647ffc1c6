#!/usr/bin/env bash
# The crash campaigns and stress tests that are marked `#[ignore]` for their length.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_cargo
# As `make test` builds them: optimised, with overflow checks and assertions, which are half of what a campaign checks,
# and mostly built before. A release of the workspace beside it took longer than many a campaign.
failed=0
# The browser has a script of its own, which sees to it that there is one.
cargo test --workspace --no-fail-fast --lib --bins --tests -- --ignored --nocapture --skip a_browser_shows || failed=1
for engine in shadow hybrid twin; do
    # Those choose their engine themselves.
    once=()
    [ "$engine" = shadow ] || once=(--skip fresh:: --skip torn:: --skip lanes:: --skip in_flight:: --skip buffered::)
    DURUM_TEST_ENGINE=$engine cargo test -p durum --test crash -- --nocapture canaries "${once[@]}" || failed=1
done
say "-- what the other crates leave out"
cargo test --workspace --exclude durum --no-fail-fast --tests -- --nocapture canaries || failed=1
say "-- every crash of every workload, which make test samples"
DURUM_CRASH_ALL=1 cargo test -p durum -p durum-tests --no-fail-fast --test crash --test typed_crash --test gc_crash -- --skip canaries || failed=1
say "-- the same of the service"
DURUM_CRASH_ALL=1 cargo test -p durum-service-tests --no-fail-fast --test store -- power_cuts || failed=1
say "-- tools that read, and damaged bytes; NVL-C's heaps"
DURUM_CRASH_ALL=1 cargo test -p durum-cli --no-fail-fast --test check -- flipped || failed=1
DURUM_CRASH_ALL=1 cargo test -p durum-nvl --no-fail-fast --test crash || failed=1
DURUM_CRASH_ALL=1 cargo test -p durum-nvl --no-fail-fast --test runtime -- --nocapture migrating:: || failed=1
say "-- sections"
DURUM_CRASH_ALL=1 cargo test -p durum-ido --no-fail-fast --test sections -- crash --skip canaries || failed=1
say "-- the same of the key-value store"
DURUM_CRASH_ALL=1 cargo test -p durum-kv --no-fail-fast --test crash -- --nocapture || failed=1
say "-- the client's campaigns on Hybrid"
DURUM_TEST_ENGINE=hybrid cargo test -p durum -p durum-tests --no-fail-fast --tests -- --ignored --nocapture || failed=1
for engine in twin twin-basic twin-lr; do
    say "-- the crash simulator on $engine"
    DURUM_CRASH_ALL=1 DURUM_TEST_ENGINE=$engine cargo test -p durum --no-fail-fast --test crash -- --skip chaining:: --nocapture || failed=1
done
exit "$failed"
