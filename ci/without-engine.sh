#!/usr/bin/env bash
# Takes an engine out of the client, which has to compile and to pass its tests on the other engines: nothing but the
# list in engine/mod.rs knows it.
#
#   ci/without-engine.sh [hybrid|shadow|twin]...   all three without names
#
# WITHOUT_TESTS=1 looks only whether it compiles.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_cargo
engines=(hybrid shadow twin)
by_engine=(basics updates structures pools)
copy=$CARGO_TARGET_DIR/without-engine
mkdir -p "$copy"
for without in "${@:-${engines[@]}}"; do
    say "without $without"
    rm -rf "$copy/src" && mkdir "$copy/src"
    git ls-files -z | tar cf - --null -T - | tar xf - -C "$copy/src"
    src=$copy/src/crates/durum/src
    rm -r "$src/engine/$without" "$src/engine/$without.rs"
    # Its lines in the list, and the names that the list has of it.
    sed -i "/\b$without\b/d; /EngineKind::${without^}\b/d" "$src/engine/mod.rs"
    [ "$without" != twin ] || sed -i '/pub use engine::{LrRef, View};/d' "$src/lib.rs"
    (
        cd "$copy/src"
        export CARGO_TARGET_DIR=$copy/target
        cargo check --quiet -p durum --lib
        [ -z "${WITHOUT_TESTS:-}" ] || exit 0
        for engine in "${engines[@]}"; do
            [ "$engine" != "$without" ] || continue
            DURUM_TEST_ENGINE=$engine cargo test --quiet -p durum "${by_engine[@]/#/--test=}"
        done
    )
done
