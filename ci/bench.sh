#!/usr/bin/env bash
# Runs the benchmark suites named by SUITE (empty: all), side by side with libpmemobj. Arguments are
# handed on to the benchmark. The table goes to the terminal, results to target/bench/.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build bench
need_cargo
[ -f bench/Cargo.toml ] || refuse "bench/Cargo.toml is missing: this tree has no benchmark"
exec cargo run --release --quiet --manifest-path bench/Cargo.toml --bin durum-bench -- ${SUITE:+--suite "$SUITE"} "$@"
