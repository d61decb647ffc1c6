#!/usr/bin/env bash
# Kills a program in its sections, and has its code complete them without it, again and again: what the program has
# deposited, or what is in the file. Other code does not, and changes nothing.
#
#   completed.sh DURUM PROGRAM CODE KILLS OTHERS...
set -euo pipefail
durum=$1 program=$2 code=$3 kills=$4
shift 4
[ -x "$durum" ]
heap=$(mktemp -d /dev/shm/durum-completed.XXXXXX)/heap
trap 'rm -rf "$(dirname "$heap")"' EXIT
completed=0
for ((kill = 0; kill < kills; kill++)); do
    "$program" "$heap" &
    # Until it has made its heap, and has gone on for a moment.
    until [ -e "$heap/durum.store" ] && "$durum" ls "$heap" 2>/dev/null | grep '^heap' >/dev/null; do
        kill -0 $! || exit 1
        sleep 0.01
    done
    sleep "0.0$((RANDOM % 10))"
    kill -KILL $!
    wait $! 2>/dev/null || true
    if "$durum" recover "$heap" >"$heap.told" 2>/dev/null; then continue; fi
    grep '^interrupted' "$heap.told"
    for other in "$@"; do
        if "$durum" recover "$heap" --complete-with "$other" 2>&1; then exit 1; fi
    done
    case $((kill % 2)) in
    0) "$durum" recover "$heap" --complete-sections ;;
    1) "$durum" recover "$heap" --complete-with "$code" ;;
    esac | grep '^completed  "heap"'
    completed=$((completed + 1))
    # The program finds nothing to complete.
    "$durum" recover "$heap" >"$heap.told" || { cat "$heap.told" && exit 1; }
    grep -q '^clean' "$heap.told" || { cat "$heap.told" && exit 1; }
    "$durum" check "$heap" >"$heap.told" || { cat "$heap.told" && exit 1; }
    "$program" "$heap" examine
done
[ "$completed" -gt 0 ] || { echo "no section was interrupted by $kills kills" && exit 1; }
