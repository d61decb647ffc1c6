#!/usr/bin/env bash
# Checks the rules of the house that no compiler knows (ci/tidy/main.rs lists them).
#
#   ci/tidy.sh              checks the repository
#   ci/tidy.sh --self-test  checks the checker
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_cargo
out=$CARGO_TARGET_DIR/ci/tidy
mkdir -p "$out"
rust() { rustc --edition 2024 -D warnings --out-dir "$out" "$@" ci/tidy/main.rs; }

if [ "${1:-}" = --self-test ]; then
    rust --test --crate-name tidy_test
    "$out/tidy_test" --quiet
else
    rust --crate-name tidy
    files . | "$out/tidy"
fi
