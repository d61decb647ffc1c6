#!/usr/bin/env bash
# What is too long for every change, or needs more than stable Rust. Each step says when it is skipped.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build
need_cargo
# A step whose prerequisites are missing has said so; the others can run.
optional() {
    local rc=0
    "$@" || rc=$?
    [ "$rc" != 2 ] || rc=77
    return "$rc"
}
step campaigns ci/campaigns.sh
step power-cuts ci/judge.sh long
step engines ci/engines.sh
step bench-answers ci/test-bench.sh
step c-compilers env ALL_COMPILERS=1 ci/test-capi.sh
step c++-compilers env ALL_COMPILERS=1 ci/test-cpp.sh
step durumcc-levels env LEVELS="-O0 -O1 -O2 -O3" ci/test-compiler.sh
step random-c env FILTER="random|sections/" SEEDS="${SEEDS:-1000}" ci/test-compiler.sh
step compilers ci/test-compilers.sh --install
step browser optional ci/test-browser.sh
step fuzz ci/fuzz.sh
step miri ci/miri.sh
step oldest-compiler ci/msrv.sh
step aarch64-packages optional ci/deps.sh aarch64
step aarch64 optional ci/aarch64.sh
say "test-long: $PASSED steps passed, $FAILED failed, $SKIPPED skipped, $((SECONDS / 60)) min"
[ "$FAILED" = 0 ] || { say "failed:$FAILED_NAMES" && exit 1; }
