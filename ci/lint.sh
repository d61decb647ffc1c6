#!/usr/bin/env bash
# Runs every check that reads the code without running it; a failed one does not hide the next.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build lint
need_cargo
need_component fmt rustfmt
need_component clippy clippy
step tidy ci/tidy.sh
# Blanks at the end of lines and files, of all that git knows: the difference from an empty tree.
step whitespace git diff --check "$(git hash-object -t tree /dev/null)"
step format ci/fmt.sh
step clang-format ci/clang-format.sh
step scripts ci/scripts.sh
step clippy ci/clippy.sh
step documentation ci/doc.sh
step pictures docs/pictures/draw.py --check
step interface ci/public.sh
[ "$FAILED" = 0 ] || { say "lint: failed:$FAILED_NAMES" && exit 1; }
say "lint: all clean"
