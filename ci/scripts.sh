#!/usr/bin/env bash
# Shell scripts parse, start with `set -euo pipefail` and may be run; shellcheck has a say if it is here.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

failed=0
bad() { warn "$1: $2" && failed=1; }
while IFS= read -r f; do
    first=$(head -n 1 "$f")
    case $first in
    '#!'*bash*)
        bash -n "$f" || failed=1
        grep -q '^set -euo pipefail$' "$f" || bad "$f" "no 'set -euo pipefail' line"
        ;;
    '#!'*sh*) sh -n "$f" || failed=1 ;;
    '#!'*) ;;
    *) [ "$f" = ci/lib.sh ] || bad "$f" "no #! line" ;;
    esac
    [ "$f" = ci/lib.sh ] || [ -x "$f" ] || bad "$f" "not executable"
    if command -v shellcheck >/dev/null; then
        shellcheck --external-sources --source-path=SCRIPTDIR --exclude=SC1091 "$f" || failed=1
    fi
done < <(files '*.sh' .ci/run tests/power-vm/init)
exit "$failed"
