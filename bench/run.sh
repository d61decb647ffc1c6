#!/bin/sh
# Builds and runs the benchmarks. SUITE chooses one suite; further arguments go to durum-bench (see --help).
# Results: target/bench/latest.csv, .txt, .svg (docs/benchmarks.md).
set -eu
cd "$(dirname "$0")/.."

if ! [ -e /usr/include/libpmemobj.h ]; then
    echo "bench/run.sh: libpmemobj is missing: install the package libpmemobj-dev" >&2
    exit 2
fi

target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
cargo build --quiet --release --manifest-path bench/Cargo.toml --target-dir "$target/bench-build"

exec "$target/bench-build/release/durum-bench" ${SUITE:+--suite "$SUITE"} "$@"
