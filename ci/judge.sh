#!/usr/bin/env bash
# An independent judge of power cuts (tests/judge): a program in C is watched by strace, and what a cut could have left
# is rebuilt, recovered and checked, by engine.
#
#   ci/judge.sh [long]     SEED chooses other images
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ci/deps.sh build judge
need_cargo
if ! strace -o /dev/null true 2>/dev/null; then
    say "power cuts: processes cannot be traced here"
    exit 77
fi
build_for_tests
built=$CARGO_TARGET_DIR/debug
export PYTHONDONTWRITEBYTECODE=1
# The program's store lies on a disk, else it would be changed by stores, which nobody sees from outside.
on_disk=$(mktemp -d "$CARGO_TARGET_DIR/judge.XXXXXX")
work=$(mktemp -d /dev/shm/durum-judge.XXXXXX)
# After a failure they stay: the message tells how to make the image again.
trap '[ "$failed" != 0 ] || rm -rf "$work" "$on_disk"' EXIT
if [ "$("$built/durum" stat --domain "$on_disk")" != file ]; then
    say "power cuts: $on_disk is not on a disk; CARGO_TARGET_DIR can be"
    exit 77
fi

# Engine, steps, threads, images, images with cuts in their recovery, transactions whose syncs are left out.
runs() {
    if [ "${1:-}" = long ]; then
        cat <<'TABLE'
shadow   400 1 6000 60 40
shadow   200 3 6000 60 40
hybrid   400 1 6000 60 40
hybrid   200 3 6000 60 40
twin     60  1 3000 30 20
twin     30  3 3000 30 20
twin-lr  60  1 3000 30 20
TABLE
    else
        cat <<'TABLE'
shadow   30  2 200 4 3
hybrid   30  1 150 3 3
twin     8   1 100 3 3
TABLE
    fi
}

judge() { # judge ENGINE STEPS THREADS IMAGES NESTED CANARIES
    python3 tests/judge/judge.py --work "$on_disk/$1" --images-in "$images_in" --seed "${SEED:-1}" \
        --images "$4" --nested "$5" --canaries "$6" \
        --then "$built/durum recover {store}" --then "$built/durum check {store}" --then "$work/workload {store} $1 check" \
        -- "$work/workload" "{store}" "$1" run "$2" "$3"
}

check "the judge's own tests" python3 tests/judge/selftest.py
check "compile workload" gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -pedantic -Icrates/durum-capi/include \
    tests/judge/workload.c -o "$work/workload" "$built/libdurum.a" -lpthread -ldl -lm
# Recovery is the same code everywhere; where syncs take no time many more images are looked at.
places=("$work")
[ "${1:-}" != long ] || places+=("$on_disk")
for images_in in "${places[@]}"; do
    while read -ra run; do
        rm -rf "$on_disk/${run[0]}"
        check "power cuts, ${run[*]}" judge "${run[@]}"
        say "${run[*]}: $(sed -n 's/^judge: //p' "$work/log" | tr '\n' ' ')"
    done < <(runs "${1:-}")
done
say "$passed passed, $failed failed"
[ "$failed" = 0 ]
