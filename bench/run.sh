#!/bin/sh
# Builds and runs the benchmarks. SUITE chooses one suite; further arguments go to durum-bench (see --help).
# Results, all in target/bench: latest.csv, .txt, .svg, .html; of the typed operations operations, of kernels in C nvlc
# and locks, of the aggregation sensors, of the service daemon, of key-value stores kv, with the same endings; of a run
# of all suites run.html, which holds the pages of all (docs/internals/benchmarks.md).
set -eu
cd "$(dirname "$0")/.."

need() { # need HEADER PACKAGE
    [ -e "/usr/include/$1" ] && return
    echo "bench/run.sh: $1 is missing: install the package $2" >&2
    exit 2
}
need libpmemobj.h libpmemobj-dev
need leveldb/c.h libleveldb-dev
need lmdb.h liblmdb-dev

target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
cargo build --quiet --release --manifest-path bench/Cargo.toml --target-dir "$target/bench-build"
# The service lies beside the programs that ask it.
cargo build --quiet --release --package durumd --target-dir "$target/bench-build"

# Key-value stores have a program of their own, with benchmarks and options of their own.
[ "${SUITE:-}" != kv ] || exec "$target/bench-build/release/durum-bench-kv" --out "$target/bench" "$@"
[ -n "${SUITE:-}" ] || [ $# -gt 0 ] || "$target/bench-build/release/durum-bench-kv" --out "$target/bench"

# Recovery after kills has a program of its own.
case "${SUITE:-}" in twin | "") [ $# -gt 0 ] || "$target/bench-build/release/durum-bench-recovery" ;; esac
# The operations of the typed interface, one by one, have a program of their own; then come its structures.
case "${SUITE:-}" in typed | "") [ $# -gt 0 ] || "$target/bench-build/release/durum-bench-typed" --out "$target/bench" ;; esac
# What asking a service costs has a program of its own; then come transactions in its store.
case "${SUITE:-}" in daemon | "") [ $# -gt 0 ] || "$target/bench-build/release/durum-bench-daemon" --out "$target/bench" ;; esac
# So have sections, in which a program announces nothing.
[ "${SUITE:-}" != sections ] || exec "$target/bench-build/release/durum-bench-sections" "$@"
[ -n "${SUITE:-}" ] || [ $# -gt 0 ] || "$target/bench-build/release/durum-bench-sections"
# So has the aggregation of what many nodes have found.
sensors() {
    "$target/bench-build/release/durum-bench-sensors" --out "$target/bench" "$@"
}
case "${SUITE:-}" in
sensors)
    sensors "$@"
    exit
    ;;
"") [ $# -gt 0 ] || sensors ;;
esac
# So have kernels in C, which need their compiler.
kernels() { # kernels SUITE ARGUMENTS...
    suite=$1
    shift
    ci/durumcc.sh "$target/bench-build/durumcc" >/dev/null
    "$target/bench-build/release/durum-bench-kernels" --suite "$suite" --prefix "$target/bench-build/durumcc" \
        --out "$target/bench" "$@"
}
# Programs that others could have written, and their patches; and how long it takes to complete what was killed.
programs() {
    bench/locks/programs/compare.py "$target/bench-build/durumcc/bin/durumcc" | tee "$target/bench/programs.txt"
    bench/locks/recovery/recovery.py "$target/bench-build/durumcc/bin/durumcc" "$target/bench-build/durumcc/bin/durum" |
        tee "$target/bench/recovery.txt"
}
case "${SUITE:-}" in
nvlc | locks)
    kernels "$SUITE" "$@"
    [ "$SUITE" != locks ] || [ $# -gt 0 ] || programs
    exit
    ;;
"") [ $# -gt 0 ] || { kernels nvlc && kernels locks && programs; } ;;
esac
# The programs of examples/rust belong to the suite typed as well.
case "${SUITE:-}" in typed) set -- --suite programs "$@" ;; esac
[ -z "${SUITE:-}" ] && [ $# -eq 0 ] ||
    exec "$target/bench-build/release/durum-bench" --out "$target/bench" ${SUITE:+--suite "$SUITE"} "$@"
"$target/bench-build/release/durum-bench" --out "$target/bench"
cd "$target/bench"
"$target/bench-build/release/durum-bench-page" run.html \
    latest.html operations.html daemon.html sensors.html kv.html nvlc.html locks.html programs.txt recovery.txt
