#!/usr/bin/env bash
# Runs a command beside a service of a new store in memory, which SERVICE names, and ends the service in order; its log
# is SERVICE_LOG. Fails if either does.
#
#   ci/served.sh DURUMD COMMAND...
set -euo pipefail
durumd=$1
shift
work=$(mktemp -d /dev/shm/durumd.XXXXXX)
env -u RUST_LOG "$durumd" --store "$work/store" --socket "$work/sock" 2>"$work/log" &
service=$!
trap 'kill -KILL $service 2>/dev/null || true; rm -rf "$work"' EXIT
failed() {
    cat "$work/log" >&2
    exit 1
}
until grep -qs serving "$work/log"; do
    kill -0 $service || failed
    sleep 0.01
done
rc=0
SERVICE=durum+unix:$work/sock SERVICE_LOG=$work/log "$@" || rc=$?
kill $service
wait $service || failed
exit "$rc"
