#!/usr/bin/env bash
# Kills the durable programs that durable.sh has put into DIR, KILLS times each, and starts them again.
#
#   test.sh DIR KILLS [--all]
#
# Where DURUM names the command, what is dumped of each heap is loaded as another, in which its program finds the same.
# With --all the cache also does what the plain one does, as its own test asks for, and the store has a million keys.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=${1:?the directory is missing} kills=${2:?the number of kills is missing}
work=$(mktemp -d -p /dev/shm)
trap 'rm -rf "$work"' EXIT
[ -z "${DURUM:-}" ] || export COME_BACK="$here/come_back.sh $DURUM"

"$programs/kill_structures" "$kills" 1
"$programs/kill_store" "$kills" 1
python3 "$here/kill_cache.py" "$programs/cache" "$kills" 1
keys=1000
if [ "${3:-}" = --all ]; then
    keys=1000000
    python3 "$here/../cache/test.py" "$programs/cache" 1 "$work"
fi
DURUM_HEAP=$work/store "$programs/store" "$keys" 20000
