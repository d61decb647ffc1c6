#!/usr/bin/env bash
# durum.h under every gcc and clang that is here: programs that are right have no warning, a wrong field macro has one
# error.
#
#   ci/test-compilers.sh             with what is installed
#   ci/test-compilers.sh --install   installs first what the system has of them (ci/deps.sh compilers)
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[ "${1:-}" != --install ] || ci/deps.sh compilers
work=$(mktemp -d /dev/shm/durum-compilers.XXXXXX)
trap 'rm -rf "$work"' EXIT
capi=crates/durum-capi
flags=(-O2 -Wall -Wextra -Werror -pedantic -D_GNU_SOURCE -I "$capi/include")

# Those of these names, each once: gcc is gcc-12 as well.
installed() { # installed NAMES
    local name path
    compgen -c | grep -xE "($1)(-[0-9]+)?" | sort -Vu | while read -r name; do
        path=$(command -v "$name")
        printf '%s %s\n' "$name" "$(readlink -f "$path")"
    done | awk '!seen[$2]++ { print $1 }'
}

without_a_warning() { # without_a_warning COMPILER OPTIONS...
    local compiler=$1 file
    shift
    for file in $capi/tests/c/*.c examples/c/*.c; do
        "$compiler" "${flags[@]}" "$@" -c "$file" -o /dev/null || return 1
    done
}
# The words that stand behind the case are told; where they are ours, once and nothing else.
refuses() { # refuses COMPILER CASE WORDS OPTIONS...
    local compiler=$1 number=$2 words=$3
    shift 3
    ! "$compiler" "${flags[@]}" "$@" -DCASE="$number" -c $capi/tests/programs/refused.c -o /dev/null 2>"$work/refusal" || return 1
    cat "$work/refusal"
    # In C99 ours are the name of a member.
    [[ $words != durum:* || "$*" != *c99* ]] || words=${words//[^A-Za-z_]/_}
    grep -qF "$words" "$work/refusal" || return 1
    [[ $words != durum[:_]* ]] || [ "$(grep -c 'error:' "$work/refusal")" = 1 ]
}
refuses_all() { # refuses_all COMPILER OPTIONS...
    local compiler=$1 number words
    shift
    check "$compiler $*: no mistake" "$compiler" "${flags[@]}" "$@" -DCASE=0 -c $capi/tests/programs/refused.c -o /dev/null
    while read -r number words; do
        check "$compiler $* refuses case $number" refuses "$compiler" "$number" "$words" "$@"
    done < <(sed -n 's|^#.*CASE == \([0-9]*\) *// \(.*\)|\1 \2|p' $capi/tests/programs/refused.c)
}

for compiler in $(installed 'gcc|clang'); do
    check "$compiler: no warning" without_a_warning "$compiler" -std=c11
    refuses_all "$compiler" -std=c11
    refuses_all "$compiler" -std=c99
done
for compiler in $(installed 'g\+\+|clang\+\+'); do
    check "$compiler: no warning" without_a_warning "$compiler" -x c++ -std=c++17
    refuses_all "$compiler" -x c++ -std=c++17 -Wno-pedantic
done

say "$(installed 'gcc|g\+\+|clang|clang\+\+' | tr '\n' ' ')"
say "$passed passed, $failed failed"
[ "$failed" = 0 ]
