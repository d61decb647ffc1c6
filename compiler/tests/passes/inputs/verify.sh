#!/usr/bin/env bash
# Compiles each file at each level for the optimizer of the linker. What LLVM finds broken then is an error.
#   verify.sh DURUMCC -IDIRECTORY FILE...
set -euo pipefail
durumcc=$1
include=$2
shift 2
for file in "$@"; do
    for level in -O0 -O1 -O2 -O3 -Os; do
        # shellcheck disable=SC2086
        $durumcc -w "$level" -flto "$include" -c "$file" -o /dev/null || { echo "$file at $level" && exit 1; }
    done
done
