#!/usr/bin/env bash
# The documentation builds without a warning: broken links, missing items, bad examples.
# Only libraries: the `durum` command and the `durum` library would write the same page.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

RUSTDOCFLAGS="-D warnings" cargo doc --quiet --keep-going --workspace --no-deps --lib
