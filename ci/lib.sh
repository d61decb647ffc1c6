# Shared by the scripts in ci/. Source it first: it moves to the repository's top and finds the tools.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
TOP=$PWD
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$TOP/target}
# Where nobody compiles a second time, in CI and in a new clone, nothing is put aside for it. For all scripts, as they
# share what is built.
[ -z "${CI:-}" ] && [ -d "$CARGO_TARGET_DIR/debug/incremental" ] || export CARGO_INCREMENTAL=0
# rustup installs to ~/.cargo/bin, and mkfs.ext4 lies in /usr/sbin: neither is on every user's path.
PATH=$PATH:${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin:/usr/sbin:/sbin

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }

# A prerequisite is missing: exit 2, apart from a failed check (1).
refuse() {
    warn "$*"
    exit 2
}

need_cargo() {
    local found home
    # Behind sudo: that of the user who called it.
    if ! command -v cargo >/dev/null && [ -n "${SUDO_USER:-}" ]; then
        home=$(getent passwd "$SUDO_USER" | cut -d: -f6)
        export PATH="$PATH:$home/.cargo/bin" RUSTUP_HOME="${RUSTUP_HOME:-$home/.rustup}"
    fi
    found=$(cargo --version 2>/dev/null | sed 's/^cargo \([0-9.]*\).*/\1/') || true
    # Not older than that: of the two it is the one that does not come first.
    [ -n "$found" ] && printf '%s\n' "$(rust_version)" "$found" | sort -CV && return
    [ -n "$found" ] && found="cargo $found is too old" || found="cargo not found"
    refuse "$found. durum needs a stable Rust toolchain, $(rust_version) or newer: https://rustup.rs"
}

# Programs and libraries as all tests are built, so that nothing is built twice: with the libraries alone some crates
# would have other features. A derive that is built for its own sake has other options than one that is built for the
# others.
build_for_tests() { cargo build --quiet --profile test --workspace --exclude durum-derive --all-targets; }

# The oldest compiler that Cargo.toml promises.
rust_version() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$TOP/Cargo.toml"; }

need_component() { # need_component SUBCOMMAND COMPONENT
    cargo "$1" --version >/dev/null 2>&1 && return
    refuse "cargo $1 not found. Get it with: rustup component add $2"
}

have_nightly() { command -v rustup >/dev/null && cargo +nightly --version >/dev/null 2>&1; }

# Runs one named check and tells its time and outcome; never ends the script, so that later checks
# run too. Outcomes end up in PASSED, FAILED and SKIPPED. A check that exits 77 skipped itself.
PASSED=0 FAILED=0 SKIPPED=0 FAILED_NAMES=
step() { # step NAME COMMAND...
    local name=$1 start=$SECONDS rc=0
    shift
    say "== $name"
    "$@" || rc=$?
    ended "$name" "$rc" "$((SECONDS - start)) s"
}

ended() { # ended NAME CODE TIME
    case $2 in
    0) PASSED=$((PASSED + 1)) && say "== $1: ok, $3" ;;
    77) SKIPPED=$((SKIPPED + 1)) && say "== $1: skipped" ;;
    *) FAILED=$((FAILED + 1)) FAILED_NAMES="$FAILED_NAMES $1" && say "== $1: FAILED (exit $2), $3" ;;
    esac
    # A missing tool or package concerns every later step as well.
    [ "$2" != 2 ] || { end_all && exit 2; }
}

# As step, beside others: many wait for a disk, or for a process that is to be killed. One more than there are
# processors, and no more than four, because some have threads of their own. What one prints is shown when it ends, and
# stays in $LOGS/NAME.log. The time of processors tells more than that of the clock here.
declare -A RUNNING=()
BESIDE_MAX=$(($(nproc) < 3 ? $(nproc) + 1 : 4))
beside() { # beside NAME COMMAND...
    local name=$1
    shift
    [ "${#RUNNING[@]}" -lt "$BESIDE_MAX" ] || one_ends
    say "== $name: begins"
    # A process group of its own, which can be ended as a whole.
    set -m
    (
        rc=0
        "$@" >"$LOGS/$name.log" 2>&1 || rc=$?
        times >"$LOGS/$name.times"
        exit "$rc"
    ) &
    set +m
    RUNNING[$!]="$name $SECONDS"
}

one_ends() {
    local pid rc=0 name start
    wait -n -p pid "${!RUNNING[@]}" || rc=$?
    read -r name start <<<"${RUNNING[$pid]}"
    unset "RUNNING[$pid]"
    cat "$LOGS/$name.log"
    ended "$name" "$rc" "$((SECONDS - start)) s; processors: $(tail -n 1 "$LOGS/$name.times")"
}

all_end() { while [ "${#RUNNING[@]}" -gt 0 ]; do one_ends; done; }

# Whoever interrupts the script means those beside it, too.
end_all() {
    local groups=("${!RUNNING[@]}")
    [ "${#groups[@]}" = 0 ] || kill -- "${groups[@]/#/-}" 2>/dev/null || true
}

# Git's list of the repository's files, one a line, without what is deleted in the work tree. New
# files that nobody added yet are in it: a check at home sees what a commit would contain.
files() { # files PATTERN...
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u |
        while IFS= read -r f; do [ ! -f "$f" ] || printf '%s\n' "$f"; done
}

# One of many small checks of a script that has a directory $work: counts it, and shows the end of what a failed one
# printed.
passed=0 failed=0
check() { # check NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        warn "$name: FAILED"
        sed 's/^/    /' "$work/log" | tail -n 40 >&2
    fi
}

# The last whole line of what a killed program said: a kill cuts a write where it goes on in another page of the file.
last_line() { # last_line FILE
    tail -n 2 "$1" | awk -v whole="$(tail -c 1 "$1" | wc -l)" '{ lines[NR] = $0 } END { print lines[whole ? NR : NR - 1] }'
}

# What `durum dump` writes of a pool, `durum load` makes the same pool of, with another engine. $work has the copy.
comes_back() { # comes_back DURUM STORE POOL [OPTION]...
    local durum=$1 store=$2 pool=$3 copy=$work/loaded
    shift 3
    rm -rf "$copy"
    "$durum" dump "$store" "$pool" >"$work/dumped" && "$durum" init "$copy" &&
        "$durum" load "$copy" copy --engine twin "$@" <"$work/dumped" && "$durum" check "$copy" || return 1
    "$durum" dump "$copy" copy | tail -n +2 | diff <(tail -n +2 "$work/dumped") - || return 1
    "$durum" inspect "$copy" copy
}

# examples/*/tasks.*: each version goes on with what the one before has stored, and no earlier one comes back. $work has
# the store.
versions_go_on() { # versions_go_on PROGRAM, without its version
    local store=$work/$(basename "$1").store
    "$1"1 "$store" && "$1"2 "$store" && "$1"3 "$store" >"$work/third" || return 1
    printf '%s\n' 'task 3, 20 attempts, until 300, after 2' 'task 2, 20 attempts, until 200' 'task 1, 10 attempts' |
        diff - "$work/third" || return 1
    local version
    for version in 1 2; do
        ! "$1$version" "$store" 2>"$work/refused" && grep "newer version of this program" "$work/refused" || return 1
    done
}
