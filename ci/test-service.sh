#!/usr/bin/env bash
# durumd as `make install` installs it: systemd accepts its units, its user and its directories, and calls the service
# safe; no capability is left to it. Nothing is started: that takes a machine that systemd has booted.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
# One order for all that is compared.
export LC_ALL=C.UTF-8

need_cargo
ci/deps.sh service || { say "systemd-analyze is not here, and cannot be installed: the units are not checked" && exit 77; }
[ $# -gt 0 ] || build_for_tests
built=${1:-$CARGO_TARGET_DIR/debug}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PREFIX=$work/usr DESTDIR= ci/install-service.sh "$built"
units=$work/usr/lib/systemd/system

# Of what systemd says nothing but our units is meant; a warning is a fault, too.
sound() {
    local said
    said=$(systemd-analyze verify --man=no "$units"/durum* 2>&1) || { printf '%s\n' "$said" && return 1; }
    if grep -F "$units" <<<"$said"; then return 1; fi
}
# 20 stands for 2.0.
safe() { systemd-analyze security --offline=true --threshold=20 --no-pager "$units/${1:-durumd.service}"; }
# "✓" stands before a capability that is not there.
no_capability() {
    local capabilities
    capabilities=$(safe | grep -F 'CapabilityBoundingSet=~')
    [ "$(wc -l <<<"$capabilities")" -ge 20 ] && ! grep -v '^✓' <<<"$capabilities"
}
user() { systemd-sysusers --root="$work" --dry-run "$work/usr/lib/sysusers.d/durumd.conf" 2>&1 | grep -F "user 'durum'"; }
directories() {
    mkdir -p "$work/etc" && printf 'durum:x:990:990::/:/bin/false\n' >"$work/etc/passwd"
    printf 'durum:x:990:\n' >"$work/etc/group"
    systemd-tmpfiles --root="$work" --create "$work/usr/lib/tmpfiles.d/durumd.conf"
    [ "$(stat -c %a "$work/run/durum" "$work/var/lib/durum" | tr '\n' ' ')" = "755 700 " ]
}
runs() { "$work/usr/bin/durumd" --version | grep -F 'durumd '; }
# What the service allows itself, the unit allows it, too.
calls() {
    local allowed
    allowed=$(allowed_by_unit)
    "$work/usr/bin/durumd" --store . --sandbox-calls | sort >"$work/calls"
    [ -s "$work/calls" ] && ! comm -23 "$work/calls" <(printf '%s\n' "$allowed") | grep .
}
# What the service does to narrow itself, before that list is in place: no group of systemd's has all of it.
narrows() {
    allows durumd.service landlock_create_ruleset landlock_add_rule landlock_restrict_self prctl seccomp
}
# What the runner does with a child before that is code, and does not do with itself.
runner_calls() {
    allows durum-runner@.service capget clone close_range dup3 execveat landlock_create_ruleset landlock_restrict_self prctl \
        prlimit64 seccomp setsid wait4 waitid
}
allows() { # allows UNIT CALL...
    local allowed
    allowed=$(allowed_by_unit "$1")
    ! comm -13 <(printf '%s\n' "$allowed") <(printf '%s\n' "${@:2}" | sort) | grep .
}
# The system calls of a unit's filter, groups resolved.
allowed_by_unit() { # allowed_by_unit [UNIT]
    local line filter=() without=()
    while IFS= read -r line; do
        case $line in
        "~"*) read -ra without <<<"${line#\~}" ;;
        *) read -ra filter <<<"$line" ;;
        esac
    done < <(sed -n 's/^SystemCallFilter=//p' "$units/${1:-durumd.service}")
    comm -23 <(names "${filter[@]}" @default | sort -u) <(names "${without[@]}" | sort -u)
}
names() { # names GROUP|CALL...
    local name
    for name in "$@"; do
        case $name in
        @*)
            local parts=()
            mapfile -t parts < <(systemd-analyze syscall-filter "$name" | sed -n 's/^    \([@a-z0-9_-]*\)$/\1/p')
            names "${parts[@]}"
            ;;
        *) printf '%s\n' "$name" ;;
        esac
    done
}

# What only root can try: programs of several users, and a service of one that is not root.
users() {
    [ "$(id -u)" = 0 ] || { say "skipped: it takes root to be several users" && return; }
    local rc=0 place
    place=$(mktemp -d -p /dev/shm) && chmod 755 "$place"
    install -m 755 "$built/durum" "$built/durumd" "$work/usr/bin/" && chmod 755 "$work"
    (
        set -x
        PATH=$work/usr/bin:$PATH
        as() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
        listens() { for _ in $(seq 100); do [ -S "$1" ] && return; sleep 0.1; done; return 1; }
        trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
        durumd --store "$place/store" --socket "$place/sock" --user 12001 &
        listens "$place/sock" || exit
        export DURUM_SOCKET=$place/sock
        as 12001 durum kv put durum:colors sky blue --create || exit
        as 12003 durum kv get durum:colors sky 2>"$place/said" && exit 1
        grep -F 'user 12003 may not use this store' "$place/said" || exit
        # Not by their path either.
        as 12001 ls "$place/store" && exit 1
        # A service of somebody's own, who is not root: it narrows itself, too, and nobody else believes it.
        install -d -o 12003 -g 12003 "$place/his"
        # Not by `as`: of that a shell would be ended, and the service left.
        setpriv --reuid=12003 --regid=12003 --clear-groups \
            durumd --store "$place/his/store" --socket "$place/his/sock" --user 12001 2>"$place/log" &
        listens "$place/his/sock" || exit
        grep -F 'no landlock' "$place/log" || grep -F 'landlock: no file' "$place/log" || exit
        grep -F 'seccomp: all other system calls are refused' "$place/log" || exit
        export DURUM_SOCKET=$place/his/sock
        as 12003 durum kv put durum:colors sky grey --create || exit
        as 12003 durum chmod 0666 durum:colors || exit
        as 12001 durum kv get durum:colors sky 2>"$place/said" && exit 1
        grep -F 'user 12003 is at the other end' "$place/said" || exit
        [ "$(DURUM_SERVICE_USER=12003 as 12001 durum kv get durum:colors sky)" = grey ]
    ) || rc=$?
    rm -rf "$place"
    return "$rc"
}
# The commands of the tutorial. Root lets two users play the two, else one plays both.
tutorial() {
    local place one other
    place=$(mktemp -d -p /dev/shm) && chmod 755 "$place"
    if [ "$(id -u)" = 0 ]; then one=12001 other=12002; else one=$(id -u) other=$one; fi
    install -m 755 "$built/durum" "$built/durumd" "$work/usr/bin/" && chmod 755 "$work"
    {
        printf 'set -euxo pipefail\nset -m\n'
        printf 'PLACE=%q ONE=%q OTHER=%q PATH=%q:$PATH\n' "$place" "$one" "$other" "$work/usr/bin"
        cat <<'AS'
as() { if [ "$(id -u)" = "$1" ]; then "${@:2}"; else setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; fi; }
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
AS
        sed -n '/^```sh$/,/^```$/{/^```/d;p}' docs/tutorials/service.md
    } >"$work/tutorial.sh"
    local rc=0
    (cd "$place" && bash "$work/tutorial.sh" >"$work/said") || rc=$?
    cat "$work/said"
    rm -rf "$place"
    [ "$rc" = 0 ] && grep -qx blue "$work/said" && grep -qx $'grass\tgreen' "$work/said" &&
        grep -q '^all .* counts equal' "$work/said" && grep -q '^durumd [0-9]' "$work/said"
}

# All that is installed goes, and nothing else.
uninstalls() {
    local place=$work/gone
    PREFIX=/usr DESTDIR=$place ci/install.sh --profile test || return
    mkdir -p "$place/var/lib/durum" "$place/usr/include/durum"
    touch "$place/var/lib/durum/durum.store" "$place/usr/bin/other" "$place/usr/include/durum/mine.hpp" \
        "$place/usr/lib/libdurum.so.0.0.9"
    PREFIX=/usr DESTDIR=$place ci/uninstall.sh || return
    (cd "$place" && find . ! -type d | sort) >"$work/left"
    diff "$work/left" - <<'LEFT' || return
./usr/bin/other
./usr/include/durum/mine.hpp
./var/lib/durum/durum.store
LEFT
    [ ! -e "$place/usr/include/durum-kv" ] && [ ! -e "$place/usr/lib/cmake/durum" ] || return
    ! PREFIX=/usr DESTDIR=$place ci/uninstall.sh
}

check "units are sound" sound
check "exposure is at most 2.0" safe
check "exposure of the runner is at most 2.0" safe durum-runner@.service
check "no capability" no_capability
check "sysusers.d" user
check "tmpfiles.d" directories
check "durumd runs" runs
check "system calls" calls
check "system calls to narrow itself" narrows
check "system calls of the runner" runner_calls
check "docs/tutorials/service.md" tutorial
check "users" users
check "uninstall" uninstalls
say "$passed passed, $failed failed"
[ "$failed" = 0 ]
