#!/usr/bin/env bash
# rustdoc with its output as JSON, which a stable one has, too, but gives only if it is told to act as an unstable one.
# Cargo itself is not told: then it would build everything anew.
set -euo pipefail

RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
