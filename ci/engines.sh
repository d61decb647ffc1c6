#!/usr/bin/env bash
# The client knows its engines by the list in engine/mod.rs only.
#
#   ci/engines.sh out   takes each engine out in turn: the client compiles, and passes its tests on the other two
#   ci/engines.sh in    runs pools by engines that are in no product (`sample`, which keeps something of each puddle,
#                       pool, store and thread; `direct`): the tests pass that need no crash
#   ci/engines.sh       both
#
# QUICK=1: looks only whether the client compiles without each of them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_cargo
engines=(hybrid shadow twin)
by_engine=(basics updates structures pools)
copy=$CARGO_TARGET_DIR/engines

# The tree as it is, committed or not.
files() {
    local file
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        [ ! -e "$file" ] || printf '%s\0' "$file"
    done
}

out() {
    local without engine src=$copy/src/crates/durum/src
    for without in "${engines[@]}"; do
        say "-- without $without"
        rm -rf "$copy/src" && mkdir -p "$copy/src"
        files | tar cf - --null -T - | tar xf - -C "$copy/src"
        rm -r "$src/engine/$without" "$src/engine/$without.rs"
        # Its lines in the list, and the names that the list has of it.
        sed -i "/\b$without\b/d; /EngineKind::${without^}\b/d" "$src/engine/mod.rs"
        [ "$without" != twin ] || sed -i '/pub use engine::{LrRef, View};/d' "$src/lib.rs"
        # What only this engine used is not used now.
        (cd "$copy/src" && RUSTFLAGS=-Awarnings CARGO_TARGET_DIR=$copy/target cargo check --quiet -p durum --lib)
        [ -z "${QUICK:-}" ] || continue
        for engine in "${engines[@]}"; do
            [ "$engine" = "$without" ] || without_it "$engine"
        done
    done
}

without_it() { # without_it ENGINE
    (
        cd "$copy/src"
        export RUSTFLAGS=-Awarnings CARGO_TARGET_DIR=$copy/target DURUM_TEST_ENGINE=$1
        cargo test --quiet -p durum-tests --test=updates --test=structures
    )
}

in_() {
    local engine
    for engine in sample direct; do
        say "-- by $engine"
        # They run pools of Hybrid only, and buffered transactions are Shadow's.
        DURUM_TEST_ENGINE=$engine cargo test --quiet -p durum-tests --features test-engines "${by_engine[@]/#/--test=}" -- \
            --skip survives_crashes --skip buffered::
    done
}

[ $# -gt 0 ] || set -- out in
for half; do
    case $half in
    out) out ;;
    in) in_ ;;
    *) refuse "usage: ci/engines.sh [out] [in]" ;;
    esac
done
