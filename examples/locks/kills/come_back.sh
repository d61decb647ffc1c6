#!/usr/bin/env bash
# Puts in the place of a heap what is loaded of its dump: its program finds the same in it.
#
#   come_back.sh DURUM HEAP
set -euo pipefail
durum=${1:?the command is missing} heap=${2:?the heap is missing}

"$durum" dump "$heap" heap >"$heap.dumped"
"$durum" init "$heap.loaded" >/dev/null
"$durum" load "$heap.loaded" heap <"$heap.dumped" >/dev/null
"$durum" check "$heap.loaded" >/dev/null
"$durum" dump "$heap.loaded" heap | tail -n +2 | cmp - <(tail -n +2 "$heap.dumped")
rm -r "$heap" "$heap.dumped"
mv "$heap.loaded" "$heap"
