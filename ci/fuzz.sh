#!/usr/bin/env bash
# Runs each fuzz target for FUZZ_SECONDS (default 120) from its corpus. Needs nightly Rust and cargo-fuzz.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

fuzz_dirs=$(files '*/fuzz/Cargo.toml' 'fuzz/Cargo.toml' | xargs -r -n 1 dirname)
[ -n "$fuzz_dirs" ] || { say "no fuzz targets in this tree" && exit 77; }
have_nightly || { say "no nightly toolchain (rustup toolchain install nightly)" && exit 77; }
cargo +nightly fuzz --version >/dev/null 2>&1 ||
    { say "no cargo-fuzz (cargo install cargo-fuzz)" && exit 77; }

failed=0
for dir in $fuzz_dirs; do
    for target in $(cargo +nightly fuzz list --fuzz-dir "$dir"); do
        say "-- $dir: $target, ${FUZZ_SECONDS:-120} s"
        cargo +nightly fuzz run --fuzz-dir "$dir" "$target" -- \
            -max_total_time="${FUZZ_SECONDS:-120}" -print_final_stats=1 || failed=1
    done
done
exit "$failed"
