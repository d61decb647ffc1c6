#!/usr/bin/env bash
# The tests of the benchmarks: their structures give the right answers, and the kernels in C in all their forms. Nothing
# is timed, and of the peers only libpmemobj is used.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
ci/deps.sh build bench compiler
need_cargo

# Some sides ask a service, which the other tests have built.
cargo build --quiet --profile test --package durumd
export DURUMD=$CARGO_TARGET_DIR/debug/durumd
cargo test --quiet --manifest-path bench/Cargo.toml -p durum-bench-core --no-default-features --no-fail-fast

# The kernels are compiled by the durumcc that its own tests build as well.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check "durumcc" ci/durumcc.sh "$work/prefix" --profile test --strict
for suite in nvlc locks; do
    [ "$failed" != 0 ] || check "kernels of the suite $suite" "$CARGO_TARGET_DIR/debug/durum-bench-kernels" \
        --suite "$suite" --prefix "$work/prefix" --out "$CARGO_TARGET_DIR/ci/bench" --quick
done
[ "$failed" != 0 ] || check "programs of the suite locks" bench/locks/programs/compare.py "$work/prefix/bin/durumcc" --quick
[ "$failed" != 0 ] || check "recovery of the suite locks" bench/locks/recovery/recovery.py "$work/prefix/bin/durumcc" \
    "$work/prefix/bin/durum" --quick
say "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
