#!/usr/bin/env bash
# libdurum_kv as its users meet it: installed, and found by pkg-config and CMake. Programs that know LevelDB's C and C++
# interfaces only are compiled and linked with it. Where LevelDB is installed, the same objects are linked with that,
# too, and have to see the same.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build capi
need_cargo
capi=crates/durum-kv-capi
work=$(mktemp -d /dev/shm/durum-kv.XXXXXX)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
PREFIX=$prefix ci/install.sh --profile test
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -ra own <<<"$(pkg-config --libs durum_kv) -Wl,-rpath,$prefix/lib -lpthread"
read -ra static <<<"$(pkg-config --static --libs durum_kv | sed 's/-ldurum_kv/-l:libdurum_kv.a/')"
read -ra leveldb <<<"$(pkg-config --cflags durum_kv_leveldb)"
runs() { # runs PROGRAM: in an empty directory
    rm -rf "$work/dir" && mkdir "$work/dir"
    "$1" "$work/dir"
}

serves() { # serves PROGRAM: its databases are pools of a service's store
    # shellcheck disable=SC2016
    ci/served.sh "$CARGO_TARGET_DIR/debug/durumd" bash -c '"$1" "$SERVICE" :' - "$1"
}

warnings=(-g -Wall -Wextra -Werror -pedantic)
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    check "$compiler store.c" $compiler -std=c11 -D_GNU_SOURCE "${warnings[@]}" "${leveldb[@]}" -c \
        $capi/tests/programs/store.c -o "$work/store.o"
    check "link store" $compiler "$work/store.o" -o "$work/store" "${own[@]}"
    check "store in C, $compiler" runs "$work/store"
    check "store in C, $compiler, served" serves "$work/store"
    check "link store, static" $compiler "$work/store.o" -o "$work/store" "${static[@]}"
    check "store in C, $compiler, static" runs "$work/store"
    check "$compiler extension.c" $compiler -std=c11 -D_GNU_SOURCE "${warnings[@]}" "-I$prefix/include" \
        $capi/tests/programs/extension.c -o "$work/extension" "${own[@]}"
    check "durum's own functions, $compiler" runs "$work/extension"
    check "durum's own functions, $compiler, served" serves "$work/extension"
done
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    for package in durum_kv_leveldb durum_kv; do
        read -ra options <<<"$(pkg-config --cflags $package)"
        [ $package != durum_kv ] || options+=(-DOWN_NAMES)
        check "$compiler $package store.cpp" $compiler -std=c++17 "${warnings[@]}" "${options[@]}" \
            $capi/tests/programs/store.cpp -o "$work/store-cpp" "${own[@]}"
        check "store in C++, $compiler $package" runs "$work/store-cpp"
        check "store in C++, $compiler $package, served" serves "$work/store-cpp"
    done
    for both in "" -DBOTH_NAMES; do
        check "$compiler names.cpp $both" $compiler -std=c++17 "${warnings[@]}" ${both:+"$both"} "-I$prefix/include" "${leveldb[@]}" \
            $capi/tests/programs/names.cpp -o "$work/names" "${own[@]}"
        check "LevelDB's names, $compiler $both" runs "$work/names"
    done
    check "$compiler status.cpp" $compiler -std=c++17 "${warnings[@]}" "${leveldb[@]}" $capi/tests/programs/status.cpp -o "$work/status" "${own[@]}"
    check "codes and messages, $compiler" runs "$work/status"
    check "$compiler no_memory.cpp" $compiler -std=c++17 "${warnings[@]}" "-I$prefix/include" $capi/tests/programs/no_memory.cpp -o "$work/no_memory" "${own[@]}"
    check "without memory for a copy, $compiler" runs "$work/no_memory"
    # What durum does not have is refused, and no other LevelDB's is taken.
    for header in table.h table_builder.h dumpfile.h helpers/memenv.h; do
        refuses() {
            ! echo "#include <leveldb/$header>" | $compiler -std=c++17 -x c++ "${leveldb[@]}" -fsyntax-only - 2>"$work/refusal" &&
                grep -q "leveldb/$header: durum has no " "$work/refusal"
        }
        check "$compiler refuses $header" refuses
    done
done
cmake_builds() {
    cmake -S $capi/tests/cmake -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DPROGRAMS="$TOP/$capi/tests/programs" &&
        cmake --build "$work/cmake"
}
check "cmake" cmake_builds
for program in store store_cpp store_own extension; do
    check "cmake: $program" runs "$work/cmake/${program}_durum_kv"
    check "cmake: $program, static" runs "$work/cmake/${program}_static"
done
# The first programs of docs/tutorials/kv.md, as it compiles them. They go on with each other's database.
read -ra plain <<<"$(pkg-config --cflags --libs durum_kv) -Wl,-rpath,$prefix/lib"
check "compile names.c" cc "${warnings[@]}" examples/kv/names.c -o "$work/names-c" "${plain[@]}"
check "compile names.cpp" c++ -std=c++17 "${warnings[@]}" examples/kv/names.cpp -o "$work/names-cpp" "${plain[@]}"
mkdir "$work/names.dir"
counts_to() { [ "$(cd "$work/names.dir" && "$1" ada)" = "ada: $2" ]; }
check "names in C" counts_to "$work/names-c" 1
check "names in C++" counts_to "$work/names-cpp" 2
check "names in C, again" counts_to "$work/names-c" 3
check "names come back" comes_back "$prefix/bin/durum" "$work/names.dir/names" kv
if [ -e /usr/include/leveldb/c.h ]; then
    # One object of LevelDB's own header, linked with either library.
    check "compile with LevelDB's header" gcc -std=c11 -D_GNU_SOURCE "${warnings[@]}" -c $capi/tests/programs/store.c -o "$work/theirs.o"
    check "link with LevelDB" gcc "$work/theirs.o" -o "$work/theirs" -lleveldb -lpthread
    check "LevelDB sees the same" runs "$work/theirs"
    check "link the same object" gcc "$work/theirs.o" -o "$work/ours" "${own[@]}"
    check "it sees the same here" runs "$work/ours"
    # All of LevelDB's own headers, but for those that are refused, have a counterpart.
    all_headers() { diff <(cd /usr/include/leveldb && find . -name '*.h' | sort) <(cd "$prefix/include/durum-kv/leveldb" && find . -name '*.h' ! -name names.h | sort); }
    check "every header of LevelDB's is there" all_headers
    check "compile names.cpp with LevelDB's headers" g++ -std=c++17 -g $capi/tests/programs/names.cpp -o "$work/names" -lleveldb -lpthread
    check "LevelDB's names, LevelDB" runs "$work/names"
    check "compile status.cpp with LevelDB's headers" g++ -std=c++17 -g $capi/tests/programs/status.cpp -o "$work/status" -lleveldb -lpthread
    check "codes and messages, LevelDB" runs "$work/status"
    functions() { nm -D --defined-only "$1" | awk '$3 ~ /^leveldb_/ { print $3 }' | sort; }
    all_functions() {
        local library
        library=$(gcc -print-file-name=libleveldb.so)
        diff <(functions "$library") <(functions "$prefix/lib/libdurum_kv.so")
    }
    check "every function of LevelDB's is there" all_functions
fi
# The program beside it, by the flags that LevelDB's has.
times() {
    "$prefix/bin/durum-kv-bench" --benchmarks=fillseq,readrandom,snappycomp,no-such-name, --num=1000 --reads=-1 --write_buffer_size=4194304 \
        --db="$work/bench" 2>"$work/bench.err" | tee "$work/bench.out"
    grep -q '^FileSize:   ' "$work/bench.out" && grep -q "^unknown benchmark 'no-such-name'$" "$work/bench.err" &&
        grep -q '^readrandom   : .*(1000 of 1000 found)$' "$work/bench.out" && [ -e "$prefix/share/man/man1/durum-kv-bench.1" ]
}
check "durum-kv-bench" times
say "$passed passed, $failed failed"
[ "$failed" = 0 ]
