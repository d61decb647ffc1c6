#!/usr/bin/env bash
# Compiles each file by both compilers with many options and compares the objects. Of files without OpenMP each takes
# every other option, in turns, unless it is to be --all.
set -euo pipefail
step=2
[ "$1" != --all ] || { step=1 && shift; }
durumcc=$1
clang=$2
scratch=$3
shift 3
mkdir -p "$scratch"

same() { # same FILE OPTIONS...
    "$durumcc" "$@" -o "$scratch/durumcc.o" 2>"$scratch/told" || { cat "$scratch/told" && exit 1; }
    "$clang" "$@" -o "$scratch/clang.o" 2>"$scratch/told"
    cmp "$scratch/durumcc.o" "$scratch/clang.o" || { echo "not the same: $*" && exit 1; }
}
all=(-O0 -O1 -O2 -O3 -Os "-O2 -g" "-O0 -g3" "-O2 -march=x86-64-v3" "-O1 -fsanitize=address,undefined" "-O2 -flto" "-O2 -flto=thin"
    "-O2 -fPIC -ffunction-sections" "-O1 -fopenmp" "-O2 -std=c99" "-O2 -fprofile-instr-generate" "-O2 -save-temps=obj")
with_openmp=(-O0 -O2 -O3 -Os "-O0 -g" "-O2 -g" "-O2 -gline-tables-only" "-O2 -Rpass=inline" "-O2 -flto" "-O2 -flto=thin"
    "-O1 -fsanitize=address" "-O2 -fsanitize=thread,undefined" "-O2 -fPIC" "-O2 -save-temps=obj")
first=0
for file in "$@"; do
    tried=()
    for ((at = first; at < ${#all[@]}; at += step)); do
        tried+=("${all[at]}")
    done
    first=$(((first + 1) % step))
    case $file in
    */section.c) tried=(-O0 "-O2 -g" "-O2 -flto") ;;
    *.cpp) tried=(-O0 "-O2 -g" "-O2 -std=c++20 -flto=thin") ;;
    esac
    if grep -q '#pragma omp' "$file"; then
        # Without OpenMP it is a file like others.
        tried=(-O0 "-O2 -g")
        tried+=("${with_openmp[@]/#/-fopenmp }" "-O0 -fopenmp-simd" "-O2 -fopenmp-simd" "-O2 -fopenmp-simd -flto")
    fi
    for options in "${tried[@]}"; do
        # shellcheck disable=SC2086
        same -c -w $options "$file"
    done
    same -w -S -O2 "$file"
    same -w -S -O2 -fopenmp "$file"
    same -w -E "$file"
done
