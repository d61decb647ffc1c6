#!/usr/bin/env bash
# CMake, ccache and precompiled headers with -fido, in C and C++: durable-build-systems.sh PREFIX SCRATCH.
# PREFIX has the simulated runtime.
set -euo pipefail
prefix=$1
scratch=$2
inputs=$(cd "$(dirname "$0")" && pwd)
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
digests='0000000000000000 0000000000000000 0000000000000001 0000000000000004'

# A library of C and a program of C++ beside each other, both with a precompiled header.
mkdir project
cp "$inputs/section.c" project/section.c
cp "$inputs/section.c" project/section.cpp
sed -i "s,\.\./\.\./sections/inputs/,," project/section.c project/section.cpp
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(sections C CXX)
foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "taken for ${CMAKE_${language}_COMPILER_ID}")
    endif()
endforeach()
include_directories(${SIMULATED})
add_executable(c section.c)
target_precompile_headers(c PRIVATE <pthread.h>)
add_executable(cpp section.cpp)
target_precompile_headers(cpp PRIVATE <mutex> <vector>)
include(CheckIPOSupported)
check_ipo_supported()
END
for type in Debug Release; do
    cmake -S project -B "$type" -DSIMULATED="$inputs/../../sections/inputs" -DCMAKE_C_COMPILER="$prefix/bin/durumcc" -DCMAKE_CXX_COMPILER="$prefix/bin/durumc++" \
        -DCMAKE_BUILD_TYPE=$type -DCMAKE_C_FLAGS="-fido -Wall -Werror" -DCMAKE_CXX_FLAGS="-fido -Wall -Werror" >cmake.log
    cmake --build "$type" >>cmake.log
    for program in c cpp; do
        [ "$(echo $("$type/$program" digests image))" = "$digests" ]
        grep -q __durum_ido_record "$type/$program"
    done
done

# ccache keeps what is compiled with -fido apart from what is not, also where it hands over preprocessed code.
CCACHE_DIR=$scratch/ccache
export CCACHE_DIR
for settings in CCACHE_CPP2=true CCACHE_NOCPP2=true; do
    rm -rf "$CCACHE_DIR"
    for object in plain.o durable.o again.o; do
        options=()
        [ $object = plain.o ] || options=(-fido)
        env $settings ccache "$prefix/bin/durumcc" "${options[@]}" -O2 -c "$inputs/section.c" -o $object
    done
    cmp durable.o again.o
    if cmp -s plain.o durable.o; then exit 1; fi
    ccache --print-stats | grep -q '^direct_cache_hit	1$'
    "$prefix/bin/durumcc" durable.o -o cached
    [ "$(echo $(./cached digests image))" = "$digests" ]
done

# Moved to another place, and called by a link of the name of a compiler of C++.
mkdir bin
cp -r "$prefix" moved
ln -s ../moved/bin/durumcc bin/c++
bin/c++ -fido -x c++ "$inputs/section.c" -o linked
[ "$(echo $(./linked digests image))" = "$digests" ]
"$scratch/bin/c++" -### linked 2>&1 | grep -q lstdc++
