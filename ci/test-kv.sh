#!/usr/bin/env bash
# libdurum_kv as its users meet it: programs that know LevelDB's C and C++ interfaces only are compiled and linked with it.
# Where LevelDB is installed, the same objects are linked with that, too, and have to see the same.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build capi
need_cargo
cargo build --quiet --profile test -p durum-kv-capi
built=$CARGO_TARGET_DIR/debug
capi=crates/durum-kv-capi
work=$(mktemp -d /dev/shm/durum-kv.XXXXXX)
trap 'rm -rf "$work"' EXIT
ln -s "$built/libdurum_kv.so" "$work/libdurum_kv.so.0"
ln -s libdurum_kv.so.0 "$work/libdurum_kv.so"
runs() { # runs PROGRAM: in an empty directory
    rm -rf "$work/dir" && mkdir "$work/dir"
    "$1" "$work/dir"
}

warnings=(-g -Wall -Wextra -Werror -pedantic)
own=(-L"$work" -ldurum_kv "-Wl,-rpath,$work" -lpthread)
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    check "$compiler store.c" $compiler -std=c11 -D_GNU_SOURCE "${warnings[@]}" -I $capi/include/durum-kv -c \
        $capi/tests/programs/store.c -o "$work/store.o"
    check "link store" $compiler "$work/store.o" -o "$work/store" "${own[@]}"
    check "store in C, $compiler" runs "$work/store"
done
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    for names in "-I$capi/include/durum-kv" "-I$capi/include -DOWN_NAMES"; do
        read -ra options <<<"$names"
        check "$compiler $names store.cpp" $compiler -std=c++17 "${warnings[@]}" "${options[@]}" \
            $capi/tests/programs/store.cpp -o "$work/store-cpp" "${own[@]}"
        check "store in C++, $compiler $names" runs "$work/store-cpp"
    done
done
if [ -e /usr/include/leveldb/c.h ]; then
    # One object of LevelDB's own header, linked with either library.
    check "compile with LevelDB's header" gcc -std=c11 -D_GNU_SOURCE "${warnings[@]}" -c $capi/tests/programs/store.c -o "$work/theirs.o"
    check "link with LevelDB" gcc "$work/theirs.o" -o "$work/theirs" -lleveldb -lpthread
    check "LevelDB sees the same" runs "$work/theirs"
    check "link the same object" gcc "$work/theirs.o" -o "$work/ours" "${own[@]}"
    check "it sees the same here" runs "$work/ours"
    functions() { nm -D --defined-only "$1" | awk '$3 ~ /^leveldb_/ { print $3 }' | sort; }
    all_functions() {
        local library
        library=$(gcc -print-file-name=libleveldb.so)
        diff <(functions "$library") <(functions "$work/libdurum_kv.so")
    }
    check "every function of LevelDB's is there" all_functions
fi
say "$passed passed, $failed failed"
[ "$failed" = 0 ]
