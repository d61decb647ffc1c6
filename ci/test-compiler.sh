#!/usr/bin/env bash
# durumcc: builds it with warnings as errors, installs it with libdurum, and runs the tests of compiler/tests with the
# installed one. FILTER chooses tests by a regular expression of lit, SEEDS says how many random programs there are,
# LEVELS at which levels of optimization the others run ("-O0 -O2"; -O2 without it).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build compiler
need_cargo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
llvm=$(llvm-config-19 --bindir)

# Programs of the tests run with the library, built as for the other tests.
check "build" ci/durumcc.sh "$work/prefix" --profile test --strict

if [ "$failed" = 0 ]; then
    python3 "$llvm/../build/utils/lit/lit.py" -v -j "$(nproc)" ${FILTER:+--filter "$FILTER"} ${SEEDS:+--param "seeds=$SEEDS"} ${LEVELS:+--param "levels=$LEVELS"} \
        --param "prefix=$work/prefix" --param "llvm=$llvm" --param "durumd=$CARGO_TARGET_DIR/debug/durumd" --param "scratch=$work/tests" compiler/tests >"$work/lit" 2>&1 || true
    # The counts of lit, and what a failed test printed.
    count() { sed -n "s/^ *$1 *: *\([0-9]*\).*/\1/p" "$work/lit" | grep . || echo 0; }
    of_lit=$(count Passed)
    all=$(sed -n 's/^Total Discovered Tests: //p' "$work/lit")
    # What is for longer runs is no test of this one.
    all=$((${all:-1} - $(count Excluded) - $(count Unsupported)))
    passed=$((passed + of_lit))
    failed=$((failed + all - of_lit))
    [ "$of_lit" = "$all" ] || grep -v '^PASS' "$work/lit" | tail -n 200 >&2
    [ "$of_lit" -gt 0 ] || failed=$((failed + 1))
    [ -n "${FILTER:-}" ] || check "examples" env LD_LIBRARY_PATH="$work/prefix/lib" \
        examples/nvl/test.sh "$work/prefix/bin/durumcc" "-I$work/prefix/include"
fi
say "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
