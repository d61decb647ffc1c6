#!/usr/bin/env bash
# The documentation builds without a warning: broken links, missing items, bad examples.
# Only libraries, and not durum-capi: the command and libdurum would write the page of the crate `durum`.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

RUSTDOCFLAGS="-D warnings" cargo doc --quiet --keep-going --workspace --exclude durum-capi --no-deps --lib
