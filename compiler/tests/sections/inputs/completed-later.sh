#!/usr/bin/env bash
# Kills a program in its sections, and opens its heap with a later build: that has the code complete them which the one
# before has deposited.
#
#   completed-later.sh DURUM PROGRAM LATER KILLS
set -euo pipefail
durum=$1 program=$2 later=$3 kills=$4
heap=$(mktemp -d /dev/shm/durum-completed.XXXXXX)/heap
trap 'rm -rf "$(dirname "$heap")"' EXIT
completed=0
for ((kill = 0; kill < kills; kill++)); do
    "$program" "$heap" &
    sleep "0.$((1 + RANDOM % 3))"
    kill -KILL $!
    wait $! 2>/dev/null || true
    if ! "$durum" recover "$heap" >/dev/null 2>&1; then completed=$((completed + 1)); fi
    "$later" "$heap" examine
    "$durum" recover "$heap"
done
[ "$completed" -gt 0 ] || { echo "no section was interrupted by $kills kills" && exit 1; }
