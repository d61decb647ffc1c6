#!/usr/bin/env bash
# Compiles each file by both compilers with many options and compares the objects.
set -euo pipefail
durumcc=$1
clang=$2
scratch=$3
shift 3
mkdir -p "$scratch"

same() { # same FILE OPTIONS...
    "$durumcc" "$@" -o "$scratch/durumcc.o"
    "$clang" "$@" -o "$scratch/clang.o"
    cmp "$scratch/durumcc.o" "$scratch/clang.o" || { echo "not the same: $*" && exit 1; }
}
for file in "$@"; do
    for options in -O0 -O1 -O2 -O3 -Os "-O2 -g" "-O0 -g3" "-O2 -march=x86-64-v3" "-O1 -fsanitize=address,undefined" \
        "-O2 -flto" "-O2 -flto=thin" "-O2 -fPIC -ffunction-sections" "-O1 -fopenmp" "-O2 -std=c99" "-O2 -fprofile-instr-generate"; do
        # shellcheck disable=SC2086
        same -c -w $options "$file"
    done
    same -w -S -O2 "$file"
    same -w -E "$file"
done
