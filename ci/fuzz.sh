#!/usr/bin/env bash
# Runs each fuzz target for FUZZ_SECONDS (default 120) from its corpus, or only those named as arguments.
# Needs nightly Rust; gets cargo-fuzz by itself. New inputs go to target/fuzz-corpus, so that the
# repository changes only when somebody decides to keep one (fuzz/README.md).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_cargo
[ -f fuzz/Cargo.toml ] || { say "no fuzz targets in this tree" && exit 77; }
have_nightly || { say "no nightly toolchain (rustup toolchain install nightly)" && exit 77; }
ci/deps.sh capi # libFuzzer is C++
tools=$CARGO_TARGET_DIR/tools
PATH=$tools/bin:$PATH
if ! command -v cargo-fuzz >/dev/null; then
    say "installing cargo-fuzz to $tools"
    cargo install --quiet --locked --root "$tools" --target-dir "$tools/build" cargo-fuzz ||
        { say "no cargo-fuzz, and it could not be installed" && exit 77; }
fi

failed=0
targets=$*
for target in ${targets:-$(cargo +nightly fuzz list --fuzz-dir fuzz)}; do
    found=$CARGO_TARGET_DIR/fuzz-corpus/$target
    mkdir -p "$found"
    say "-- $target, ${FUZZ_SECONDS:-120} s"
    # The first folder gets what is new; the corpus of the repository is only read.
    cargo +nightly fuzz run --fuzz-dir fuzz "$target" "$found" "fuzz/corpus/$target" -- \
        -max_total_time="${FUZZ_SECONDS:-120}" -print_final_stats=1 || failed=1
done
exit "$failed"
