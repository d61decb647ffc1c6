#!/usr/bin/env bash
# Compiles a program at each level of optimization and runs it in an empty directory in memory. It ends with 0 if all is
# well.
#   levels.sh DURUMCC -IDIRECTORY FILE OPTIONS...
set -euo pipefail
durumcc=$1
include=$2
file=$3
shift 3
work=$(mktemp -d /dev/shm/durumcc.XXXXXX)
trap 'rm -rf "$work"' EXIT
for level in -O0 -O1 -O2 -O3; do
    mkdir "$work/run"
    "$durumcc" -Wall -Wextra -Werror $level "$include" "$@" "$file" -o "$work/program"
    (cd "$work/run" && timeout 60 ../program) || { echo "$file at $level $*: exit code $?" && exit 1; }
    rm -r "$work/run"
done
