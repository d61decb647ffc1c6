#!/usr/bin/env bash
# Everything that `make test` promises, one step after the other. Ends with one line of counts.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# What a later step misses is told now, not after ten minutes.
ci/deps.sh build capi judge cpp compiler
need_cargo
mkdir -p "$CARGO_TARGET_DIR/ci"
log=$CARGO_TARGET_DIR/ci/test.log
: >"$log"

logged() { "$@" 2>&1 | tee -a "$log"; }
step rust logged ci/test-rust.sh
step house-rules logged ci/tidy.sh --self-test
[ ! -f bench/core/src/main.rs ] || step bench-answers logged ci/test-bench.sh
[ ! -x ci/test-capi.sh ] || step c-api logged ci/test-capi.sh
step power-cuts logged ci/judge.sh
step kv-c-api logged ci/test-kv.sh
step c++-api logged ci/test-cpp.sh
step compiler logged ci/test-compiler.sh

# Tests are counted from the runners' closing lines; a failed step counts even if it printed none.
counts=$(awk -v steps="$FAILED" '
    /^test result:/ { passed += $4; failed += $6; skipped += $8 }
    /^[0-9]+ passed, [0-9]+ failed/ { passed += $1; failed += $3; if ($6 ~ /^skipped/) skipped += $5 }
    END { if (steps > failed) failed = steps
          printf "%d passed, %d failed, %d skipped", passed, failed, skipped }' "$log")
say "took $SECONDS s; the output is in $log"
[ "$FAILED" = 0 ] || say "failed:$FAILED_NAMES"
say "test: $counts"
[ "$FAILED" = 0 ]
