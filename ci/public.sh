#!/usr/bin/env bash
# The public interface of the crates `durum` and `durum-kv` is what ci/public/NAME.txt says.
#
#   ci/public.sh           compares
#   ci/public.sh --write   writes the files anew
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_cargo
cargo build --quiet --locked --manifest-path ci/public/Cargo.toml
failed=0
for name in durum durum-kv; do
    kept=ci/public/$name.txt
    json=$CARGO_TARGET_DIR/doc/${name//-/_}.json
    found=$CARGO_TARGET_DIR/ci/public-$name.txt
    mkdir -p "${found%/*}"
    RUSTDOC=$TOP/ci/public/rustdoc.sh cargo rustdoc --quiet -p "$name" --lib -- -Z unstable-options --output-format json
    if ! "$CARGO_TARGET_DIR/debug/durum-public" "$json" >"$found"; then
        say "$(rustdoc --version) writes what public-api cannot read: take another version of it in ci/public/Cargo.toml"
        exit 77
    fi
    if [ "${1:-}" = --write ]; then
        cp "$found" "$kept"
    elif ! diff -U0 --label "$kept" --label "$name as it is" "$kept" "$found"; then
        failed=1
    fi
done
[ "$failed" = 0 ] || {
    warn "The public interface is not what ci/public has. Is the change meant? Then write it down with"
    warn "    ci/public.sh --write"
    warn "and tell users in CHANGELOG.md."
    exit 1
}
