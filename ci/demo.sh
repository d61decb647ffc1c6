#!/usr/bin/env bash
# Builds the `durum` command and runs `durum demo` with the arguments given.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build
need_cargo
cargo build --release -p durum-cli --bin durum
exec cargo run --release --quiet -p durum-cli --bin durum -- demo "$@"
