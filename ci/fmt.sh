#!/usr/bin/env bash
# Rust code is formatted as `cargo fmt` does it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

cargo fmt --all --check
