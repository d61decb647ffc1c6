#!/usr/bin/env bash
# durum.hpp as its users meet it: the tests with GoogleTest, by both compilers and under the sanitizers, on each engine;
# what must not compile; the structures of examples/cpp, killed again and again. ROUNDS_CPP: kills per structure and
# engine. ALL_COMPILERS=1: optimised by g++, and under the sanitizers of clang++, too, and each on each engine. Half of
# the time goes into compiling.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build capi cpp
need_cargo
KILLS=${ROUNDS_CPP:-2}
work=$(mktemp -d /dev/shm/durum-cpp.XXXXXX)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
capi=crates/durum-capi
PREFIX=$prefix ci/install.sh --profile test
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -ra cflags <<<"$(pkg-config --cflags durum)"
read -ra libs <<<"$(pkg-config --libs durum)"
warnings=(-Wall -Wextra -Werror -pedantic)
run_path=("-Wl,-rpath,$prefix/lib")

# name, compiler, options.
compilers() {
    cat <<'TABLE'
clangxx      clang++  -O2
gxx-asan     g++      -g1 -O0 -fsanitize=address,undefined -fno-sanitize-recover=undefined
TABLE
    [ -z "${ALL_COMPILERS:-}" ] || cat <<'TABLE'
gxx           g++      -O2
gxx-asan-O1   g++      -g1 -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
clangxx-asan  clang++  -g1 -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
TABLE
}

# A header that is most of each file is compiled once. Sets `precompiled`, the options that include it.
precompile() { # precompile COMPILER HEADER OPTIONS...
    local compiler=$1 header=$2 output
    shift 2
    case $compiler in
    clang++) output=$header.pch precompiled=(-include-pch "$header.pch") ;;
    # It looks beside the header.
    *) output=$header.gch precompiled=(-include "$header") ;;
    esac
    "$compiler" -std=c++17 "${cflags[@]}" "$@" -x c++-header "$header" -o "$output"
}

compile() { # compile COMPILER OUTPUT OPTIONS...: the tests
    local compiler=$1 output=$2
    shift 2
    precompile "$compiler" "$work/tests.hpp" "$@"
    "$compiler" -std=c++17 "${warnings[@]}" "${precompiled[@]}" "${cflags[@]}" -I examples/cpp "$@" $capi/tests/cpp/*.cpp \
        -o "$output" "${run_path[@]}" "${libs[@]}" -lgtest -lgtest_main -lpthread
}
printf '#include <%s>\n' gtest/gtest.h durum.hpp >"$work/tests.hpp"

skipped=0
while read -r name compiler options; do
    read -ra options <<<"$options"
    if ! "$compiler" "${options[@]}" -x c++ -o "$work/probe" - <<<'int main() {}' 2>/dev/null; then
        say "$name: skipped, $compiler has no sanitizers here"
        skipped=$((skipped + 1))
        continue
    fi
    check "compile $name" compile "$compiler" "$work/$name" "${options[@]}"
    [ -x "$work/$name" ] || continue
    engines=(default hybrid twin twin-basic)
    # What sanitizers look for in the header are its ways with one copy and with two.
    [ -n "${ALL_COMPILERS:-}" ] || [ "$name" != gxx-asan ] || engines=(default twin)
    for engine in "${engines[@]}"; do
        # What is about readers of copies is about Twin, whatever the engine of the other tests.
        filter=$([ $engine = twin ] && echo '*' || echo '-LeftRight*')
        # A leak checker would have to stop the process, which it cannot where processes may not be traced.
        check "$name on $engine" env ASAN_OPTIONS=detect_leaks=0 DURUM_TEST_ENGINE=$engine "$work/$name" "--gtest_filter=$filter"
        say "$name on $engine: $(grep -E '^\[  PASSED  \]' "$work/log" || true)"
    done
    # And in stores of services, which are the same to each compiler.
    if [ "$name" = clangxx ]; then
        engines=(default)
        [ -z "${ALL_COMPILERS:-}" ] || engines+=(twin)
        for engine in "${engines[@]}"; do
            check "$name on $engine, stores of services" env "DURUMD=$CARGO_TARGET_DIR/debug/durumd" DURUM_TEST_ENGINE=$engine "$work/$name"
            say "$name on $engine, stores of services: $(grep -E '^\[  PASSED  \]' "$work/log" || true)"
        done
    fi
done < <(compilers)

# Mistakes do not compile, and the compiler says the words that stand behind the case.
refuses() { # refuses COMPILER CASE WORDS
    ! "$1" -std=c++17 "${precompiled[@]}" "${cflags[@]}" -DCASE="$2" -fsyntax-only $capi/tests/programs/refused.cpp \
        2>"$work/refusal" && grep -qF "$3" "$work/refusal"
}
for compiler in g++ clang++; do
    check "$compiler: the header alone" precompile $compiler "$prefix/include/durum.hpp"
    check "$compiler: no mistake" $compiler -std=c++17 "${warnings[@]}" "${cflags[@]}" -DCASE=0 -fsyntax-only \
        $capi/tests/programs/refused.cpp
    while read -r number words; do
        check "$compiler refuses case $number" refuses $compiler "$number" "$words"
    done < <(sed -n 's|^#.*CASE == \([0-9]*\) *// \(.*\)|\1 \2|p' $capi/tests/programs/refused.cpp)
done
rm -f "$prefix"/include/durum.hpp.{gch,pch}

check "compile structures" g++ -std=c++17 -O2 "${warnings[@]}" "${cflags[@]}" -I examples/cpp examples/cpp/structures.cpp \
    -o "$work/structures" "${run_path[@]}" "${libs[@]}"
check "compile queue" g++ -std=c++17 -O2 "${warnings[@]}" "${cflags[@]}" examples/cpp/queue.cpp \
    -o "$work/queue" "${run_path[@]}" "${libs[@]}" -lpthread
queue_runs() { [ "$("$work/queue" "$work/queue.store")" = "4 threads, 400 jobs, sum 79800" ]; }
check "queue" queue_runs
check "compile bank" g++ -std=c++17 -O2 "${warnings[@]}" "${cflags[@]}" examples/cpp/bank.cpp \
    -o "$work/bank" "${run_path[@]}" "${libs[@]}" -lpthread
bank_runs() { [ "$("$work/bank" "$work/bank.store")" = "total 2000, seen otherwise 0 times" ]; }
check "bank" bank_runs
check "bank, again" bank_runs
check "compile articles" g++ -std=c++17 -O2 "${warnings[@]}" "${cflags[@]}" examples/cpp/articles.cpp \
    -o "$work/articles" "${run_path[@]}" "${libs[@]}" -lpthread
articles_run() { [ "$("$work/articles" "$work/articles.store" | tail -n 1)" = "Of pools and puddles was rated $1 times" ]; }
check "articles" articles_run 1
check "articles, again" articles_run 2

# Types that change.
for version in 1 2 3; do
    check "compile tasks $version" g++ -std=c++17 "${warnings[@]}" "${cflags[@]}" -DVERSION=$version examples/cpp/tasks.cpp \
        -o "$work/tasks$version" "${run_path[@]}" "${libs[@]}"
done
check "versions of tasks" versions_go_on "$work/tasks"


# Each version makes anew what the one before has stored, and the last one finds it in a copy, too.
for version in 1 2 3; do
    check "compile diary $version" g++ -std=c++17 "${warnings[@]}" "${cflags[@]}" -DVERSION=$version examples/cpp/diary.cpp \
        -o "$work/diary$version" "${run_path[@]}" "${libs[@]}"
done
diary_goes_on() {
    local store=$work/diary.store
    "$work/diary1" "$store" && "$work/diary1" "$store" && "$work/diary2" "$store" && "$work/diary3" "$store" >"$work/third" || return 1
    printf '%s\n' '2001, day 3: entry 3, 45 s, here' '2001, day 35: entry 2, 45 s, here' \
        '2001, day 335: entry 1, 1800 s, somewhere' '2002, day 270: entry 0, 1800 s, somewhere' 'mood 5' | diff - "$work/third" || return 1
    ! "$work/diary1" "$store" 2>"$work/refused" && grep "changed since: .*; diary.entries" "$work/refused" || return 1
    ! "$work/diary2" "$store" 2>"$work/refused" && grep "is not migrated: .*the keys of a map change" "$work/refused" || return 1
}
check "versions of diary" diary_goes_on
check "diary comes back" comes_back "$prefix/bin/durum" "$work/diary.store" pool
loaded_is_read() {
    local copy=$work/diary.copy
    "$prefix/bin/durum" init "$copy" && "$prefix/bin/durum" load "$copy" pool <"$work/dumped" || return 1
    "$work/diary3" "$copy" >"$work/fourth" && grep "entry 0, 1800 s, somewhere" "$work/fourth"
}
check "diary that came back is read" loaded_is_read

for program in queue bank articles; do
    check "$program comes back" comes_back "$prefix/bin/durum" "$work/$program.store" pool
done
check "tasks come back" comes_back "$prefix/bin/durum" "$work/tasks.store" pool

# A structure steps on and says each step once it is durable. It is killed at a random moment; another process recovers
# it and looks whether it holds what that many steps put there, which are as many as last said, or one more.
killed_and_checked() { # killed_and_checked PROGRAM STORE ENGINE STRUCTURE
    local pid said found program=$1
    shift
    : >"$work/said"
    "$work/$program" "$@" run 100000000 >"$work/said" 2>"$work/said.errors" &
    pid=$!
    sleep "0.$(printf %03d $((RANDOM % 150)))"
    # It goes on until then.
    kill -KILL $pid || { cat "$work/said.errors" && return 1; }
    wait $pid 2>/dev/null || true
    said=$(last_line "$work/said")
    found=$("$work/$program" "$@" check) || return 1
    said=${said:-$previous}
    if [ "$found" -ne "$said" ] && [ "$found" -ne $((said + 1)) ]; then
        say "said $said, found $found"
        return 1
    fi
    previous=$found
}
# Strings, vectors and maps the same way, beside what the same steps make of those of std.
check "compile killed" g++ -std=c++17 -O2 "${warnings[@]}" "${cflags[@]}" $capi/tests/programs/killed.cpp -o "$work/killed" \
    "${run_path[@]}" "${libs[@]}"
for engine in default hybrid twin twin-basic; do
    previous=0
    for round in $(seq $((3 * KILLS))); do
        check "containers on $engine, kill $round" killed_and_checked killed "$work/containers.$engine" $engine containers
    done
    say "containers on $engine: $previous steps after $((3 * KILLS)) kills"
done

# The rows add up to all updates, and the one in the middle writes back about what it changes. On Twin, which the paper
# counts (Romulus, §6.2: 10 lines for the list, 50 and 130 for the tree), as few as there.
counts_of() { # counts_of ENGINE STRUCTURE: of the histogram in $work/histogram
    awk -v engine="$1" -v structure="$2" '
        $2 == "lines" { sum += $3 }
        / with changes: / { updates = $1; changes = $3; middle = $6; most = $11; fences = $14 }
        END {
            middle_max = engine !~ /^twin/ ? 16 : 10
            most_max = structure == "hash" || engine !~ /^twin/ ? 1000 : 40
            is_sane = sum == 10000 && updates == sum && changes >= 4000 && changes <= updates && middle >= 1 && middle <= middle_max &&
                most >= middle && most <= most_max && (engine !~ /^twin/ || fences <= 2)
            exit !is_sane
        }' "$work/histogram"
}
histogram_is_sane() { # histogram_is_sane STORE ENGINE STRUCTURE
    "$work/structures" "$@" histogram >"$work/histogram" && cat "$work/histogram" && counts_of "$2" "$3"
}
for engine in default hybrid twin twin-basic twin-lr; do
    for structure in list hash fixed tree swaps; do
        previous=0
        for round in $(seq "$KILLS"); do
            check "$structure on $engine, kill $round" killed_and_checked structures "$work/$engine.store" $engine $structure
        done
        say "$structure on $engine: $previous steps after $KILLS kills"
        check "histogram of $structure on $engine" histogram_is_sane "$work/$engine.store" $engine $structure
        say "    $(tail -n 1 "$work/log")"
        # What is dumped knows no engines. The array of the swaps has no type.
        [ $engine != default ] || check "$structure comes back" comes_back "$prefix/bin/durum" "$work/$engine.store" \
            $structure --untyped-hold-no-pointers
    done
done

say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
