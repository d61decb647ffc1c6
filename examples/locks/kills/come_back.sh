#!/usr/bin/env bash
# Puts in the place of a heap what is loaded of its dump: its program finds the same in it.
#
#   come_back.sh DURUM HEAP
set -euo pipefail
durum=${1:?the command is missing} heap=${2:?the heap is missing}

# What has no type has pointers, too. What a kill has left of an interrupted removal has some to what is gone.
"$durum" gc --untyped-hold-pointers "$heap" >/dev/null
dump=(dump --untyped-hold-pointers)
"$durum" "${dump[@]}" "$heap" heap >"$heap.dumped"
"$durum" init "$heap.loaded" >/dev/null
"$durum" load "$heap.loaded" heap <"$heap.dumped" >/dev/null
"$durum" check --untyped-hold-pointers "$heap.loaded" >/dev/null
"$durum" "${dump[@]}" "$heap.loaded" heap | tail -n +2 | cmp - <(tail -n +2 "$heap.dumped")
rm -r "$heap" "$heap.dumped"
mv "$heap.loaded" "$heap"
