#!/usr/bin/env bash
# Removes what ci/install.sh has installed to the same place, libraries of earlier versions included. Stores stay, and
# what an administrator has made: /etc/default/durumd, the user durum.
#
#   PREFIX=/usr/local DESTDIR= ci/uninstall.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"

PREFIX=${PREFIX:-/usr/local}
target=${DESTDIR:-}$PREFIX
[ $# = 0 ] || refuse "usage: [PREFIX=DIR] [DESTDIR=DIR] ci/uninstall.sh"
[[ $PREFIX = /* ]] || refuse "PREFIX must be an absolute path, not '$PREFIX'"

units=(crates/durumd/systemd/*.in)
units=("${units[@]##*/}")
units=("${units[@]%.in}")

# A service that runs would be left without its files, and its units enabled without being there.
runs_from_here() {
    local unit
    [ -z "${DESTDIR:-}" ] && command -v systemctl >/dev/null || return
    for unit in "${units[@]}"; do
        [ "$(systemctl show -p FragmentPath --value "$unit" 2>/dev/null)" = "$PREFIX/lib/systemd/system/$unit" ] || continue
        ! systemctl is-active --quiet "$unit" || return 0
    done
    return 1
}
! runs_from_here || refuse "durumd runs: systemctl disable --now ${units[*]}, and then again"

files=()
add() { # add DIRECTORY NAME...: what is there of it
    local directory=$1 name
    shift
    for name in "$@"; do
        [ ! -e "$target/$directory/$name" ] && [ ! -L "$target/$directory/$name" ] || files+=("$target/$directory/$name")
    done
}
# Names that the repository has in a directory, without an ending that they lose when they are installed.
names_in() { # names_in DIRECTORY PATTERN [ENDING]
    (cd "$1" && compgen -G "$2" | sed "s/${3:+\\${3}}\$//") || true
}
add_all() { # add_all DIRECTORY FROM PATTERN [ENDING]
    local directory=$1 names
    shift
    mapfile -t names < <(names_in "$@")
    add "$directory" "${names[@]}"
}

capi=crates/durum-capi
kv=crates/durum-kv-capi
add bin durum durum-kv-bench durumd
for library in durum durum_kv; do
    add lib "lib$library.a" "lib$library.so"
    while IFS= read -r file; do files+=("$file"); done < <(compgen -G "$target/lib/lib$library.so.*")
    add "lib/cmake/$library" "${library}Config.cmake" "${library}ConfigVersion.cmake"
done
for crate in $capi $kv; do
    add_all lib/pkgconfig "$crate/pkgconfig" '*.pc.in' .in
    add_all include "$crate/include" '*.h*'
done
add_all include/durum $capi/include/durum '*.hpp'
add_all include/durum-kv $kv/include/durum-kv '*.hpp'
add_all include/durum-kv/leveldb $kv/include/durum-kv/leveldb '*.h'
add_all include/durum-kv/leveldb/helpers $kv/include/durum-kv/leveldb/helpers '*.h'
add_all share/man/man1 docs/man '*.1'
add share/man/man8 durumd.8
add share/bash-completion/completions durum durumd
add share/zsh/site-functions _durum _durumd
add share/fish/vendor_completions.d durum.fish durumd.fish
add lib/systemd/system "${units[@]}"
add lib/sysusers.d durumd.conf
add lib/tmpfiles.d durumd.conf
[ "${#files[@]}" -gt 0 ] || refuse "$target: nothing of durum is installed here: name its place with PREFIX=DIR"

rm -f -- "${files[@]}"
# The directories that are durum's alone, unless somebody has put more there.
for directory in include/durum-kv/leveldb/helpers include/durum-kv/leveldb include/durum-kv include/durum \
    lib/cmake/durum lib/cmake/durum_kv; do
    [ ! -d "$target/$directory" ] || rmdir --ignore-fail-on-non-empty "$target/$directory"
done
if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi
say "removed ${#files[@]} files of durum from $target; stores stay where they are"
