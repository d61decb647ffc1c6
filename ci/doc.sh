#!/usr/bin/env bash
# The documentation builds without a warning: broken links, missing items, bad examples.
# Only libraries, and not those for C: the command, libdurum and libdurum_kv would write the pages of the crates `durum`
# and `durum-kv`.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

RUSTDOCFLAGS="-D warnings" cargo doc --quiet --keep-going --workspace --exclude durum-capi --exclude durum-kv-capi --no-deps --lib
