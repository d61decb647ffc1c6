#!/usr/bin/env bash
# C and C++ written by hand follow .clang-format; durum.h is generated.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

files '*.c' '*.h' '*.hpp' '*.cpp' | grep -v -E '(^|/)durum\.h$' | while IFS= read -r f; do
    clang-format --dry-run -Werror --style=file "$f" || printf '%s\n' "$f"
done | (! grep .)
