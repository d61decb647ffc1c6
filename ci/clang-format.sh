#!/usr/bin/env bash
# C and C++ written by hand follow .clang-format; durum.h is generated.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

failed=0
while IFS= read -r f; do
    clang-format --dry-run -Werror --style=file "$f" 2>/dev/null && continue
    failed=1
    warn "$f (mend it with: clang-format -i $f)"
    clang-format --style=file "$f" | diff -u "$f" - | sed -n '3,12p' >&2 || true
done < <(files '*.c' '*.h' '*.hpp' '*.cpp' | grep -v -E '(^|/)durum\.h$')
exit "$failed"
