#!/usr/bin/env bash
# Unit tests, behaviour tests and the examples in the documentation, of all crates.
#
#   ci/test-rust.sh           on the default engine
#   ci/test-rust.sh docs      the examples in the documentation
#   ci/test-rust.sh ENGINE    hybrid or twin: what a program may count on, and what survives a crash. Other tests run
#                             on all engines anyway
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# In CI nobody is there to interrupt a test that hangs: end it while its name can still be reported.
limit=()
[ -z "${CI:-}" ] || limit=(timeout --kill-after=10 1800)
# Named by what is left out: with the client alone some crates would have other features, and what needs them would be
# compiled again. Sections of iDO are on Hybrid whatever is asked for, and formats know no engine.
client=(--workspace --exclude durum-kv --exclude durum-nvl --exclude durum-ido --exclude durum-format)
by_engine=(addresses basics crash faults fresh kills memory pools sections stats structures updates)
# Leaving out each fence in turn takes two minutes more: ci/campaigns.sh does. Crash tests that choose their engine
# themselves, or are about what one engine does behind the program's back, run once.
skipped=(canaries buffered:: checkpoints:: wrap:: sections:: memory:: raw_log:: fresh:: lanes:: in_flight:: waiting::)
tests() { "${limit[@]}" cargo test --quiet "$@"; }

failed=0
case ${1:-} in
"")
    # Not quiet: on a new machine this takes minutes.
    cargo test --workspace --no-run
    tests --workspace --lib --bins --tests --examples --no-fail-fast -- --skip canaries || failed=1
    ;;
docs) tests --workspace --doc --no-fail-fast || failed=1 ;;
hybrid)
    skipped+=(suspects::)
    DURUM_TEST_ENGINE=hybrid tests "${client[@]}" "${by_engine[@]/#/--test=}" --no-fail-fast -- "${skipped[@]/#/--skip=}" || failed=1
    ;;
twin)
    # It has no logs that could go on from puddle to puddle, and disks fail in the same way with every engine.
    skipped+=(chaining:: failing_disk::)
    DURUM_TEST_ENGINE=twin tests "${client[@]}" "${by_engine[@]/#/--test=}" --no-fail-fast -- "${skipped[@]/#/--skip=}" || failed=1
    # Readers beside a commit, which the other modes do not have.
    DURUM_TEST_ENGINE=twin-lr tests "${client[@]}" --test=crash --no-fail-fast -- updates:: || failed=1
    ;;
*) refuse "usage: ci/test-rust.sh [docs|hybrid|twin]" ;;
esac
exit "$failed"
