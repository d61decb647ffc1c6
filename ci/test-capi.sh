#!/usr/bin/env bash
# The C interface as its users meet it: installed, found by pkg-config and CMake, compiled by every compiler at hand;
# the tests in C; the examples, killed again and again; what must not compile. ROUNDS_CAPI: kills per program.
# ALL_COMPILERS=1: the tests run as each of them makes them, and not only as those that differ most.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build capi
need_cargo
KILLS=${ROUNDS_CAPI:-30}
work=$(mktemp -d /dev/shm/durum-capi.XXXXXX)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
capi=crates/durum-capi
# Dependencies are built as `cargo test` builds them, so that nothing is built twice.
PREFIX=$prefix ci/install.sh --profile test
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -ra cflags <<<"$(pkg-config --cflags durum)"
read -ra libs <<<"$(pkg-config --libs durum)"
read -ra static_libs <<<"$(pkg-config --static --libs durum | sed 's/-ldurum/-l:libdurum.a/')"
# Locals that a block may clobber are a finding; so is everything else.
warnings=(-Wall -Wextra -Werror -pedantic)
run_path=("-Wl,-rpath,$prefix/lib")

# name, compiler, options; those that are not installed are left out.
compilers() {
    cat <<'TABLE'
gcc-c99        gcc      -std=c99 -D_GNU_SOURCE
gcc-c11        gcc      -std=c11 -D_GNU_SOURCE -O2
gcc-asan       gcc      -std=c11 -D_GNU_SOURCE -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
gxx-c++17      g++      -x c++ -std=c++17 -O2
gxx-c++11      g++      -x c++ -std=c++11
clang-c11      clang    -std=c11 -D_GNU_SOURCE -O2
clangxx-c++17  clang++  -x c++ -std=c++17
TABLE
}

compile() { # compile COMPILER OUTPUT OPTIONS... SOURCES...
    local compiler=$1 output=$2
    shift 2
    "$compiler" -g "${warnings[@]}" "${cflags[@]}" "$@" -o "$output" -x none "${run_path[@]}" "${libs[@]}" -lpthread
}

test_in() { # test_in NAME: the tests in C, in an empty directory
    mkdir "$work/$1.dir"
    # A leak checker would have to stop the process, which it cannot where processes may not be traced; the parent holds
    # no store.
    ASAN_OPTIONS=detect_leaks=0 "$work/$1" "$work/$1.dir" || return 1
    rm -rf "$work/$1.dir"
}

served() { # served NAME: the same on stores of services
    DURUMD=$CARGO_TARGET_DIR/debug/durumd test_in "$1"
}

while read -r name compiler options; do
    if ! command -v "$compiler" >/dev/null; then
        say "$name: skipped, there is no $compiler"
        continue
    fi
    read -ra options <<<"$options"
    check "compile $name" compile "$compiler" "$work/$name" "${options[@]}" $capi/tests/c/*.c
    [ -x "$work/$name" ] || continue
    case ${ALL_COMPILERS:-few}-$name in
    few-gcc-c99 | few-gxx-c++11 | few-clangxx-*) say "$name: compiles" ;;
    *)
        say "$name: the tests in C"
        check "$name" test_in "$name"
        grep -E '^[0-9]+ passed' "$work/log" || true
        ;;
    esac
    if [ $name = gcc-c11 ]; then
        check "$name, stores of services" served "$name"
        grep -E '^[0-9]+ passed' "$work/log" || true
    fi
    for example in examples/c/*.c; do
        check "compile $example with $name" compile "$compiler" "$work/example" "${options[@]}" "$example"
    done
done < <(compilers)

# Right programs without a warning, and mistakes that do not compile, with the compilers that are here.
check "compilers" ci/test-compilers.sh
grep -E '^[0-9]+ passed' "$work/log" || true

# Under Valgrind, which shows a program no vdso and knows not every system call.
if command -v valgrind >/dev/null; then
    mkdir "$work/valgrind.dir"
    check "valgrind" valgrind -q --error-exitcode=9 "$work/gcc-c11" "$work/valgrind.dir" room_behind
    rm -rf "$work/valgrind.dir"
else
    say "valgrind: skipped, there is none"
fi

# The examples through pkg-config, static through pkg-config, and through CMake.
mkdir "$work/bin"
for example in counter list_append list_hybrid; do
    check "pkg-config $example" gcc -std=c11 -O2 "${warnings[@]}" "${cflags[@]}" examples/c/$example.c \
        -o "$work/bin/$example" "${run_path[@]}" "${libs[@]}"
    check "static $example" gcc -std=c11 -O2 "${cflags[@]}" examples/c/$example.c -o "$work/bin/$example-static" "${static_libs[@]}"
done
# Containers of the standard library, made durable by sections.
check "compile containers" g++ -std=c++17 -O2 "${warnings[@]}" "${cflags[@]}" $capi/tests/programs/containers.cpp \
    -o "$work/bin/containers" "${run_path[@]}" "${libs[@]}"
# Types that change.
for version in 1 2 3 4; do
    check "compile tasks $version" gcc -std=c11 -O2 "${warnings[@]}" "${cflags[@]}" -DVERSION=$version examples/c/tasks.c \
        -o "$work/bin/tasks$version" "${run_path[@]}" "${libs[@]}"
done
check "versions of tasks" versions_go_on "$work/bin/tasks"
check "tasks come back" comes_back "$prefix/bin/durum" "$work/tasks.store" tasks
tasks_are_renewed() {
    "$work/bin/tasks4" "$work/tasks.store" >"$work/fourth" || return 1
    printf '%s\n' 'task 4, 20 attempts, until 400, priority 3, after 3' 'task 3, 20 attempts, until 300, priority 2, after 2' \
        'task 2, 20 attempts, until 200, priority 2' 'task 1, 10 attempts, priority 1' | diff - "$work/fourth" || return 1
    ! "$work/bin/tasks3" "$work/tasks.store" 2>"$work/refused" || return 1
    grep -F "queue.first->attempts: u32, now u64; *queue.first: - priority: u32" "$work/refused" || return 1
    "$prefix/bin/durum" check "$work/tasks.store"
}
check "tasks are renewed" tasks_are_renewed
# Without a handler around its functions the process would end.
check "compile ending" gcc -std=c11 -O2 "${warnings[@]}" "${cflags[@]}" -D_GNU_SOURCE examples/c/ending.c \
    -o "$work/bin/ending" "${run_path[@]}" "${libs[@]}" -lpthread
ending_runs() { [ "$("$work/bin/ending" "$work/ending.store")" = "hits 100" ]; }
check "ending" ending_runs
check "ending, again" ending_runs
check "ending comes back" comes_back "$prefix/bin/durum" "$work/ending.store" numbers
cmake_builds() {
    cmake -S $capi/tests/cmake -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLES="$TOP/examples/c" &&
        cmake --build "$work/cmake"
}
check "cmake" cmake_builds

counts_to() { # counts_to PROGRAM STORE NUMBER
    [ "$("$1" "$2")" = "run $3" ]
}
number=0
for program in "$work/bin/counter" "$work/bin/counter-static" "$work/cmake/counter" "$work/cmake/counter_static"; do
    number=$((number + 1))
    check "counter, run $number" counts_to "$program" "$work/counter.store" $number
done
check "counter comes back" comes_back "$prefix/bin/durum" "$work/counter.store" numbers

# Kills: a list program appends and says each length once it is durable. It is killed at a random moment; another
# process recovers and checks the list, which must be as long as last said, or one longer.
killed_and_checked() { # killed_and_checked PROGRAM STORE WAIT_MS_MAX
    local program=$1 store=$2 wait_ms_max=$3 ms said length pid
    : >"$work/said"
    "$program" "$store" append 100000000 >>"$work/said" 2>"$work/said.errors" &
    pid=$!
    ms=$((RANDOM % wait_ms_max))
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
    kill -KILL $pid
    wait $pid 2>/dev/null || true
    said=$(last_line "$work/said")
    length=$("$program" "$store" check) || return 1
    said=${said:-$previous}
    if [ "$length" -ne "$said" ] && [ "$length" -ne $((said + 1)) ]; then
        say "said $said, found $length"
        return 1
    fi
    previous=$length
}
kill_again_and_again() { # kill_again_and_again PROGRAM STORE KILLS WAIT_MS_MAX
    local program=$1 store=$2 kills=$3 wait_ms_max=$4 before=$failed round
    previous=0
    for round in $(seq "$kills"); do
        check "$program, kill $round" killed_and_checked "$work/bin/$program" "$store" "$wait_ms_max"
        [ "$failed" = "$before" ] || break
    done
    say "$program: $previous nodes after $kills kills in $(dirname "$store")"
}
# On a disk each commit syncs: fewer kills, and more time before each.
disk=$CARGO_TARGET_DIR/ci/capi
rm -rf "$disk" && mkdir -p "$disk"
for program in list_append list_hybrid containers; do
    kill_again_and_again $program "$work/$program.store" "$KILLS" 120
    kill_again_and_again $program "$disk/$program.store" $((KILLS / 3)) 1500
done
rm -rf "$disk"
check "list_append comes back" comes_back "$prefix/bin/durum" "$work/list_append.store" list
check "list_hybrid comes back" comes_back "$prefix/bin/durum" "$work/list_hybrid.store" "hybrid list"
check "list_append clears" "$work/bin/list_append" "$work/list_append.store" clear
emptied() { [ "$("$work/bin/list_append" "$work/list_append.store" check)" = 0 ]; }
check "list_append is empty" emptied

say "$passed passed, $failed failed"
[ "$failed" = 0 ]
