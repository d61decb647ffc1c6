#!/usr/bin/env bash
# Everything that `make test` promises. Ends with one line of counts.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# What a later step misses is told now, not after ten minutes.
ci/deps.sh build capi judge cpp compiler
need_cargo
LOGS=$CARGO_TARGET_DIR/ci/logs
rm -rf "$LOGS" && mkdir -p "$LOGS"
trap 'end_all; exit 130' INT TERM

# Not quiet: on a new machine this takes minutes.
build() { cargo test --workspace --no-run && build_for_tests; }
step build build
# The longest first. It has one program after the other to run, so the others take what it leaves of the processors.
beside rust ci/test-rust.sh
for other in "compiler ci/test-compiler.sh" "c++-api ci/test-cpp.sh" "c-api ci/test-capi.sh" \
    "rust-on-hybrid ci/test-rust.sh hybrid" "rust-on-twin ci/test-rust.sh twin" "kv-c-api ci/test-kv.sh" \
    "power-cuts ci/judge.sh" "rust-docs ci/test-rust.sh docs" "house-rules ci/tidy.sh --self-test" \
    "service-units ci/test-service.sh"; do
    read -ra other <<<"$other"
    beside "${other[0]}" nice -n 5 "${other[@]:1}"
done
all_end

# Tests are counted from the runners' closing lines; a failed step counts even if it printed none.
cat "$LOGS"/*.log >"$CARGO_TARGET_DIR/ci/test.log"
counts=$(awk -v steps="$FAILED" '
    /^test result:/ { passed += $4; failed += $6; skipped += $8 }
    /^[0-9]+ passed, [0-9]+ failed/ { passed += $1; failed += $3; if ($6 ~ /^skipped/) skipped += $5 }
    END { if (steps > failed) failed = steps
          printf "%d passed, %d failed, %d skipped", passed, failed, skipped }' "$CARGO_TARGET_DIR/ci/test.log")
say "took $SECONDS s; the output is in $CARGO_TARGET_DIR/ci/test.log"
[ "$FAILED" = 0 ] || say "failed:$FAILED_NAMES"
say "test: $counts"
[ "$FAILED" = 0 ]
