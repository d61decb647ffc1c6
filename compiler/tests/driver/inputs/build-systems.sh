#!/usr/bin/env bash
set -euo pipefail
durumcc=$1
prefix=$2
scratch=$3
inputs=$(cd "$(dirname "$0")" && pwd)
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

# CMake finds out what it is, and builds a shared library, a program, and their dependency files.
mkdir project
cp "$inputs/plain.c" "$inputs/list.c" project/
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(plain C)
if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "taken for ${CMAKE_C_COMPILER_ID}")
endif()
add_library(shared SHARED shared.c)
add_executable(plain plain.c)
target_link_libraries(plain shared)
add_library(list OBJECT list.c)
target_compile_options(list PRIVATE -fsyntax-only)
include(CheckIPOSupported)
check_ipo_supported()
END
echo 'int shared(void) { return 1; }' >project/shared.c
for type in Debug Release; do
    cmake -S project -B "$type" -DCMAKE_C_COMPILER="$durumcc" -DCMAKE_BUILD_TYPE=$type -DCMAKE_C_FLAGS="-Wall -Werror" >cmake.log
    cmake --build "$type" --target plain >>cmake.log
    "$type/plain" | grep -q '^6 2 1 3$'
done

# ccache gives the same object, the second time from its cache.
CCACHE_DIR=$scratch/ccache
export CCACHE_DIR
ccache "$durumcc" -O2 -c "$inputs/plain.c" -o one.o
ccache "$durumcc" -O2 -c "$inputs/plain.c" -o two.o
cmp one.o two.o
ccache --print-stats | grep -q '^direct_cache_hit	1$'

for options in "-flto -fuse-ld=lld" "-flto=thin -fuse-ld=lld" "-fsanitize=address,undefined" "-fsanitize=thread" "-static" "-g -Og"; do
    # shellcheck disable=SC2086
    "$durumcc" -O1 -Wall -Werror $options "$inputs/plain.c" -o sanitized
    # ThreadSanitizer cannot run where addresses are laid out at random in many bits; that it links is ours.
    case $options in *thread) ;; *) ASAN_OPTIONS=detect_leaks=0 ./sanitized | grep -q '^6 2 1 3$' ;; esac
done

# An installed tree may be moved, and used through a link.
mkdir moved bin
cp -r "$prefix/bin" "$prefix/lib" moved/
ln -s ../moved/bin/durumcc bin/cc
bin/cc -fsyntax-only "$inputs/list.c"
PATH=$scratch/bin:$PATH cc -fsyntax-only "$inputs/list.c"
rm moved/lib/durumcc/durumcc-frontend.so
if bin/cc -c "$inputs/plain.c" -o plain.o 2>error; then exit 1; fi
grep -q 'durumcc-frontend.so is missing: install durumcc again' error
