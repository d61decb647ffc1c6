#!/usr/bin/env bash
# Compiles each program twice, plain and with its data in NVM, and compares what they print: run in one go at each level
# of optimization, and killed again and again. What is dumped of a heap is loaded as another one, from which the program
# tells the same. `test.sh DURUMCC [OPTION]...`; PROGRAMS chooses some, CLANG the plain compiler, DURUM the command that
# dumps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
durumcc=("$@")
durum=${DURUM:-$(dirname "$(command -v "$1")")/durum}
options=(-std=c11 -Wall -Wextra -Werror -ffp-contract=off)
work=$(mktemp -d /dev/shm/durum-nvl-examples.XXXXXX)
trap 'rm -rf "$work"' EXIT
KILLS_MAX=12
RANDOM=1

# name, arguments of a run that is over at once, and of one that is killed
table() {
    cat <<'TABLE'
stream;1009 8;200000 600
matmul;100;640
jacobi;65 41;500 1600
hash;9000;400000
lookup;30007 500;3000000 2000
shock;301 300;6000 5000
TABLE
}

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# Ends the run after some ms; its result says whether it was over by then.
killed_run() { # killed_run PROGRAM ARGUMENTS...
    "$@" >"$work/told" &
    local process=$! ms=$((10 + RANDOM % 60))
    sleep "0.0$((ms / 10))$((ms % 10))"
    kill -KILL "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null
}

while IFS=';' read -r name short long; do
    [ -z "${PROGRAMS:-}" ] || [[ " $PROGRAMS " == *" $name "* ]] || continue
    read -ra short <<<"$short"
    read -ra long <<<"$long"
    "${CLANG:-clang-19}" "${options[@]}" -O2 "$name.c" -o "$work/$name" -lm
    expected=$("$work/$name" "${short[@]}")
    for level in 0 1 2 3; do
        "${durumcc[@]}" "${options[@]}" "-O$level" "$name.nvl.c" -o "$work/$name.nvl" -lm
        told=$("$work/$name.nvl" "$work/heap" "${short[@]}")
        [ "$told" = "$expected" ] || fail "$name at -O$level: '$told' instead of '$expected'"
        again=$("$work/$name.nvl" "$work/heap")
        [ "$again" = "$expected" ] || fail "$name at -O$level, opened again: '$again' instead of '$expected'"
        "$durum" init "$work/loaded" >/dev/null
        "$durum" dump "$work/heap" heap | "$durum" load "$work/loaded" --engine hybrid >/dev/null
        again=$("$work/$name.nvl" "$work/loaded")
        [ "$again" = "$expected" ] || fail "$name at -O$level, dumped and loaded: '$again' instead of '$expected'"
        rm -rf "$work/loaded"
        rm -rf "$work/heap"
    done
    "${durumcc[@]}" "${options[@]}" -O2 "$name.nvl.c" -o "$work/$name.nvl" -lm
    expected=$("$work/$name" "${long[@]}")
    kills=0
    while [ "$kills" -lt "$KILLS_MAX" ] && ! killed_run "$work/$name.nvl" "$work/heap" "${long[@]}"; do
        kills=$((kills + 1))
    done
    told=$("$work/$name.nvl" "$work/heap" "${long[@]}")
    rm -rf "$work/heap"
    [ "$kills" -gt 2 ] || fail "$name: it was over after $kills kills; give it more to do"
    [ "$told" = "$expected" ] || fail "$name after $kills kills: '$told' instead of '$expected'"
    printf '%s: as the plain program, also after %d kills\n' "$name" "$kills"
done < <(table)
