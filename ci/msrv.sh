#!/usr/bin/env bash
# The workspace builds with the oldest compiler that Cargo.toml names.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

version=$(rust_version)
cargo "+$version" --version >/dev/null 2>&1 ||
    { say "no Rust $version (rustup toolchain install $version)" && exit 77; }
cargo "+$version" check --workspace
