#!/usr/bin/env bash
# Unit tests, behaviour tests and the examples in the documentation, of all crates.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# In CI nobody is there to interrupt a test that hangs: end it while its name can still be reported.
limit=()
[ -z "${CI:-}" ] || limit=(timeout --kill-after=10 1200)
# Not quiet: on a new machine this takes minutes.
cargo test --workspace --no-run
failed=0
# Leaving out each of the default engine's fences in turn takes two minutes more: ci/campaigns.sh does.
"${limit[@]}" cargo test --quiet --workspace --no-fail-fast -- --skip canaries || failed=1
# What a program may count on, and what survives a crash, once more on the other engines. Other tests run on all of them anyway.
# Named by what is left out: with the client alone some crates would have other features, and what needs them would be compiled again.
client=(--workspace --exclude durum-kv --exclude durum-nvl)
by_engine=(basics crash faults fresh kills loss memory pools sections stats structures updates)
# Crash tests that choose their engine themselves have run.
skipped=(canaries buffered:: checkpoints:: wrap:: sections:: memory:: raw_log:: fresh::)
say "-- the client's tests on Hybrid"
DURUM_TEST_ENGINE=hybrid "${limit[@]}" cargo test --quiet "${client[@]}" "${by_engine[@]/#/--test=}" --no-fail-fast -- "${skipped[@]/#/--skip=}" || failed=1
# It has no logs that could go on from puddle to puddle, and disks fail in the same way with every engine.
skipped+=(chaining:: failing_disk::)
say "-- the client's tests on Twin"
DURUM_TEST_ENGINE=twin "${limit[@]}" cargo test --quiet "${client[@]}" "${by_engine[@]/#/--test=}" --no-fail-fast -- "${skipped[@]/#/--skip=}" || failed=1
# Readers beside a commit, which the other modes do not have.
DURUM_TEST_ENGINE=twin-lr "${limit[@]}" cargo test --quiet "${client[@]}" --test=crash --no-fail-fast -- updates:: || failed=1
exit "$failed"
