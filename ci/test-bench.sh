#!/usr/bin/env bash
# The tests of the benchmarks: their structures give the right answers. Nothing is timed and no peer is built.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

cargo test --quiet --manifest-path bench/Cargo.toml -p durum-bench-core --no-default-features --no-fail-fast
