#!/usr/bin/env bash
# Rust code is formatted as `cargo fmt` does it, in every workspace of the repository.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

failed=0
for manifest in $(files Cargo.toml '*/Cargo.toml' | xargs grep -l '^\[workspace\]'); do
    cargo fmt --manifest-path "$manifest" --all --check || failed=1
done
# Not part of a workspace: it is compiled by itself.
rustfmt --check ci/tidy/main.rs || failed=1
exit "$failed"
