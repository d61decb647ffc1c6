#!/usr/bin/env bash
# Builds durumcc and libdurum and installs both to a place of their own, where programs in NVL-C are compiled and run.
#
#   ci/durumcc.sh PREFIX [--profile PROFILE] [--strict]
#
# --profile is that of libdurum (a release without it); with `test` durumcc is not optimized: that takes half of the
# time, and each file that it compiles 5 % more. --strict takes warnings of the C++ compiler for errors.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

prefix=${1:?the prefix is missing}
shift
profile=(--profile release)
strict=()
while [ $# -gt 0 ]; do
    case $1 in
    --profile) profile=(--profile "${2:?--profile needs a name}") && shift ;;
    --strict) strict=(-DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DCMAKE_CXX_FLAGS=-Werror) ;;
    *) refuse "usage: ci/durumcc.sh PREFIX [--profile PROFILE] [--strict]" ;;
    esac
    shift
done

ci/deps.sh build compiler
optimized=(-DCMAKE_BUILD_TYPE=Release) build=$CARGO_TARGET_DIR/compiler
[ "${profile[1]}" != test ] || optimized=(-DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS_NONE=-DNDEBUG) build+=-for-tests
mkdir -p "$build"
# Two that build at once would break each other's files.
exec 9>"$build/lock"
flock 9
# CMake refuses what it has configured elsewhere: the build of a repository that was copied, or one in a target
# directory that several share. There the build begins anew.
configured() { realpath -m "$(sed -n "s/^$1:INTERNAL=//p" "$build/CMakeCache.txt")"; }
if [ -e "$build/CMakeCache.txt" ] && ! {
    [ "$(configured CMAKE_CACHEFILE_DIR)" = "$(realpath "$build")" ] &&
        [ "$(configured CMAKE_HOME_DIRECTORY)" = "$(realpath compiler)" ]
}; then
    find "$build" -mindepth 1 -maxdepth 1 ! -name lock -exec rm -rf {} +
fi
# The clang that the plugins are made for is there, and takes half of the time that g++ does.
cmake -S compiler -B "$build" "${optimized[@]}" -DCMAKE_CXX_COMPILER="$(llvm-config-19 --bindir)/clang++" "${strict[@]}"
cmake --build "$build" -j "$(nproc)"
# What was built has to work in another place, without the tree it was built in.
cmake --install "$build" --prefix "$prefix"
flock -u 9
PREFIX=$prefix ci/install.sh "${profile[@]}"
