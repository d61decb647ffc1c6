#!/usr/bin/env bash
# Compiler and clippy warnings are errors, in tests and examples too.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

cargo clippy --quiet --workspace --all-targets -- -D warnings
