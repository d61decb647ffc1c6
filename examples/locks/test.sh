#!/usr/bin/env bash
# Builds the programs of this folder as any program is built, and tests them with sanitizers. No part of `make test`:
# run it by hand, as `test.sh [SEED]`. CC and CXX are the compilers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
cc=${CC:-gcc} cxx=${CXX:-g++}
warnings=(-Wall -Wextra -Werror)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { # build NAME OPTION...
    local name=$1
    shift
    mkdir "$work/$name"
    "$cc" -std=c11 "${warnings[@]}" "$@" cache/*.c -o "$work/$name/cache" -pthread
    for structure in structures/*.c; do
        "$cc" -std=c11 "${warnings[@]}" "$@" -c "$structure" -o "$work/$name/$(basename "$structure" .c).o"
    done
    "$cc" -std=c11 "${warnings[@]}" "$@" store/*.c -o "$work/$name/store" -lm
    "$cxx" -std=c++17 "${warnings[@]}" "$@" structures/*.cpp "$work/$name"/*.o -o "$work/$name/structures" -pthread
}

declare -A jobs
build plain -O2 &
jobs[plain]=$!
build addresses -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all &
jobs[addresses]=$!
build threads -O1 -g -fsanitize=thread &
jobs[threads]=$!
for name in "${!jobs[@]}"; do
    wait "${jobs[$name]}"
done

failed=0
for name in addresses threads; do
    python3 cache/test.py "$work/$name/cache" "${1:-$RANDOM}" >"$work/$name/told" 2>&1 &
    jobs[$name]=$!
done
for name in plain addresses threads; do
    operations=20000
    [ "$name" = plain ] && operations=200000
    printf 'structures, %s:\n' "$name"
    "$work/$name/structures" 4 "$operations" | sed 's/^/  /' || failed=1
    printf 'store, %s: ' "$name"
    "$work/$name/store" 10000 "$operations" || failed=1
done
for name in addresses threads; do
    wait "${jobs[$name]}" || failed=1
    printf 'cache, %s: ' "$name"
    cat "$work/$name/told"
done
exit "$failed"
