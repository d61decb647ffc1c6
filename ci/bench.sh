#!/usr/bin/env bash
# Gets the peers' libraries and runs the benchmark suites named by SUITE (empty: all). Arguments are handed on.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build bench compiler
need_cargo
exec bench/run.sh "$@"
