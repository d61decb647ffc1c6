#!/usr/bin/env bash
# Compiles a program at each of these levels of optimization and runs it in an empty directory in memory. It ends with 0
# if all is well.
#   levels.sh "LEVEL..." DURUMCC -IDIRECTORY FILE OPTIONS...
set -euo pipefail
read -ra levels <<<"$1"
durumcc=$2
include=$3
file=$4
shift 4
work=$(mktemp -d /dev/shm/durumcc.XXXXXX)
trap 'rm -rf "$work"' EXIT
for level in "${levels[@]}"; do
    mkdir "$work/run"
    "$durumcc" -Wall -Wextra -Werror $level "$include" "$@" "$file" -o "$work/program"
    (cd "$work/run" && timeout 60 ../program) || { echo "$file at $level $*: exit code $?" && exit 1; }
    rm -r "$work/run"
done
