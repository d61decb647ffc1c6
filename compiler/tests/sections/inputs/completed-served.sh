#!/usr/bin/env bash
# Kills a program in its sections whose heap a service keeps. The service has the code complete them that the program
# has deposited: the program finds nothing to complete. To be run beside a service (ci/served.sh).
#
#   completed-served.sh PROGRAM KILLS
set -euo pipefail
program=$1 kills=$2
for ((kill = 0; kill < kills; kill++)); do
    "$program" "$SERVICE:heap" &
    sleep "0.$((1 + RANDOM % 3))"
    kill -KILL $!
    wait $! 2>/dev/null || true
    "$program" "$SERVICE:heap" examine
done
if grep 'sections wait for their program' "$SERVICE_LOG"; then exit 1; fi
grep -q 'a client has left in sections was completed' "$SERVICE_LOG" || { echo "no section was interrupted by $kills kills" && exit 1; }
