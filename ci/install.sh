#!/usr/bin/env bash
# Builds and installs the libraries, their headers, pkg-config and CMake files, the commands `durum` and
# `durum-kv-bench`, and durumd with its systemd units.
#
#   PREFIX=/usr/local DESTDIR= ci/install.sh [--profile PROFILE]
#
# PREFIX is where the files will be used from, DESTDIR what to put before it while installing (packagers).
# Without --profile it builds a release.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

PREFIX=${PREFIX:-/usr/local}
DESTDIR=${DESTDIR:-}
profile=release
if [ "${1:-}" = --profile ]; then
    profile=${2:?--profile needs a name}
    shift 2
fi
[ $# = 0 ] || refuse "usage: [PREFIX=DIR] [DESTDIR=DIR] ci/install.sh [--profile PROFILE]"
[[ $PREFIX = /* ]] || refuse "PREFIX must be an absolute path, not '$PREFIX'"

# Told before the build, not after it.
target=$DESTDIR$PREFIX
place=$target
while [ ! -e "$place" ]; do place=$(dirname "$place"); done
[ -w "$place" ] || refuse "$target cannot be written: choose another place with PREFIX=DIR, or be root"

ci/deps.sh build
need_cargo
# Where cargo puts what a profile makes.
case $profile in
dev | test) built=$CARGO_TARGET_DIR/debug ;;
*) built=$CARGO_TARGET_DIR/$profile ;;
esac
case $profile in
test) build_for_tests ;;
*) cargo build --quiet --profile "$profile" -p durum-capi -p durum-kv-capi -p durum-kv-bench -p durum-cli -p durumd ;;
esac

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\(.*\)"/\1/p' Cargo.toml)
lib=$DESTDIR$PREFIX/lib
include=$DESTDIR$PREFIX/include
capi=crates/durum-capi
kv=crates/durum-kv-capi

soname_of() { # soname_of CRATE
    sed -n 's/.*-soname,\(lib[a-z_]*\.so\.[0-9]*\).*/\1/p' "$1/build.rs"
}
# Shared and static, with what pkg-config and CMake need to find them.
install_library() { # install_library CRATE NAME CMAKE_FILES...
    local crate=$1 name=$2 soname file
    shift 2
    soname=$(soname_of "$crate")
    fill() {
        sed -e "s|@PREFIX@|$PREFIX|g" -e "s|@VERSION@|$version|g" -e "s|@SONAME@|$soname|g" -e "s|@NAME@|$name|g" "$@"
    }
    install -d "$lib/pkgconfig" "$lib/cmake/$name"
    install -m 644 "$built/lib$name.a" "$lib/lib$name.a"
    # A new inode, so that programs that run with the old library keep it.
    install -m 755 "$built/lib$name.so" "$lib/lib$name.so.$version"
    ln -sfn "lib$name.so.$version" "$lib/$soname"
    ln -sfn "$soname" "$lib/lib$name.so"
    for file in "$crate"/pkgconfig/*.pc.in; do
        fill "$file" >"$lib/pkgconfig/$(basename "$file" .in)"
    done
    fill "$@" >"$lib/cmake/$name/${name}Config.cmake"
    fill $capi/cmake/ConfigVersion.cmake.in >"$lib/cmake/$name/${name}ConfigVersion.cmake"
    chmod 644 "$lib/pkgconfig/$name"*.pc "$lib/cmake/$name/"*
}

install -d "$include/durum" "$include/durum-kv/leveldb/helpers"
install -m 644 $capi/include/durum.h $capi/include/durum.hpp "$include/"
install -m 644 $capi/include/durum/*.hpp "$include/durum/"
install_library $capi durum $capi/cmake/Config.cmake.in
# The key-value store, by LevelDB's interface.
install -m 644 $kv/include/durum_kv.h $kv/include/durum_kv.hpp "$include/"
install -m 644 $kv/include/durum-kv/*.hpp "$include/durum-kv/"
install -m 644 $kv/include/durum-kv/leveldb/*.h "$include/durum-kv/leveldb/"
install -m 644 $kv/include/durum-kv/leveldb/helpers/*.h "$include/durum-kv/leveldb/helpers/"
install_library $kv durum_kv $capi/cmake/Config.cmake.in $kv/cmake/leveldb.cmake.in

install -d "$DESTDIR$PREFIX/bin"
install -m 755 "$built/durum-kv-bench" "$DESTDIR$PREFIX/bin/durum-kv-bench"
install -m 755 "$built/durum" "$DESTDIR$PREFIX/bin/durum"
# Debug information is nine tenths of a release build; who debugs durum has the sources.
if [ "$profile" = release ] && command -v strip >/dev/null; then
    strip --strip-debug "$lib/libdurum.a" "$lib/libdurum.so.$version" "$lib/libdurum_kv.a" "$lib/libdurum_kv.so.$version"
    strip --strip-debug "$DESTDIR$PREFIX/bin/durum-kv-bench" "$DESTDIR$PREFIX/bin/durum"
fi
if compgen -G 'docs/man/*.1' >/dev/null; then
    install -d "$DESTDIR$PREFIX/share/man/man1"
    install -m 644 docs/man/*.1 "$DESTDIR$PREFIX/share/man/man1/"
fi
PREFIX=$PREFIX DESTDIR=$DESTDIR ci/install-service.sh "$built"
# Where each shell looks for them by itself.
share=$DESTDIR$PREFIX/share
install -d "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
complete() { # complete NAME COMMAND...: the command prints them for the shell that is named behind it
    local name=$1
    shift
    "$@" bash >"$share/bash-completion/completions/$name"
    "$@" zsh >"$share/zsh/site-functions/_$name"
    "$@" fish >"$share/fish/vendor_completions.d/$name.fish"
    chmod 644 "$share/bash-completion/completions/$name" "$share/zsh/site-functions/_$name" "$share/fish/vendor_completions.d/$name.fish"
}
complete durum "$built/durum" completions
complete durumd "$built/durumd" --completions
[ "$profile" != release ] || ! command -v strip >/dev/null || strip --strip-debug "$DESTDIR$PREFIX/bin/durumd"
say "installed durum $version to $target"
case "$PREFIX" in
/usr | /usr/local) ;;
*) say "durumd works from there, but systemd looks for its units below /usr and /usr/local only" ;;
esac
if [ -z "$DESTDIR" ]; then
    # The linker's cache is root's; elsewhere programs are told by the environment where the library is.
    [ "$(id -u)" != 0 ] || ! command -v ldconfig >/dev/null || ldconfig
    if command -v ldconfig >/dev/null && ! ldconfig -p | grep -qF "$PREFIX/lib/$(soname_of $capi)"; then
        say "programs find it with: export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig LD_LIBRARY_PATH=$PREFIX/lib PATH=$PREFIX/bin:\$PATH"
    fi
fi
