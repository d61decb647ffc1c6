#!/usr/bin/env bash
# Compiler and clippy warnings are errors, in tests, examples and benchmarks too.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

failed=0
cargo clippy --quiet --keep-going --workspace --all-targets -- -D warnings || failed=1
# The benchmarks are a workspace of their own; without the peers' libraries their own half is checked.
if [ -f bench/Cargo.toml ]; then
    peers=(--workspace)
    for header in libpmemobj.h leveldb/c.h lmdb.h; do
        [ -e "/usr/include/$header" ] || peers=(-p durum-bench-core --no-default-features)
    done
    cargo clippy --quiet --keep-going --manifest-path bench/Cargo.toml "${peers[@]}" --all-targets -- -D warnings || failed=1
fi
exit "$failed"
