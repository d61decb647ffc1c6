#!/usr/bin/env bash
# Power cuts on real ext4, in a virtual machine (tests/power-vm/run.sh): first a counter of the harness's
# own, then the canary that has to lose data, then durum, ROUNDS times. WRITE_CMD, VERIFY_CMD and their
# companions replace what durum runs.
#
#   ci/power.sh dax    persistent memory, ext4 mounted dax=always
#   ci/power.sh disk   a disk with a write cache, whose unflushed sectors are lost by chance
set -euo pipefail
. "$(dirname "$0")/lib.sh"

export MEDIUM=${1:-}
case $MEDIUM in
dax) counter_mode=write canary_mode=write-unsynced domain=dax mount_pattern='ext4 .*dax=always' ;;
disk) counter_mode=append canary_mode=append-unflushed domain=file mount_pattern='/dev/vda .* ext4 ' ;;
*) refuse "usage: ci/power.sh dax | disk" ;;
esac

ci/deps.sh build power
need_cargo
mkdir -p "$CARGO_TARGET_DIR/power-vm-payload"
counter=$CARGO_TARGET_DIR/power-vm-payload/counter
cc -O2 -Wall -Wextra -Werror -static -o "$counter" tests/power-vm/counter.c

counter_rounds() {
    env PAYLOAD="$counter" SETUP_CMD='' STAT_CMD=mount STAT_EXPECT="$mount_pattern" \
        WRITE_CMD="counter $1 /mnt/counter" VERIFY_CMD='counter verify /mnt/counter' \
        ROUNDS=2 EXPECT="$2" tests/power-vm/run.sh
}

# Recovery knows nothing of word counts. Then the structures are checked, and at last the contents: the
# counts are those of the text up to where the store says it is, and that is no less than was reported.
# shellcheck disable=SC2016 # the guest fills in what was reported
verify='durum recover /mnt/store && durum check /mnt/store &&
    durum demo --verify-only --at-least "${DURABLE:-0}" --store /mnt/store'

durum_rounds() {
    local text
    cargo build --release --quiet -p durum-cli --bin durum || return 1
    text=$(files LICENSE-APACHE 'docs/*.md' | tr '\n' ' ')
    env PAYLOAD="${PAYLOAD:-$CARGO_TARGET_DIR/release/durum $text}" \
        SETUP_CMD="${SETUP_CMD-durum init /mnt/store}" \
        STAT_CMD="${STAT_CMD-durum stat --domain /mnt}" STAT_EXPECT="${STAT_EXPECT-^ *$domain$}" \
        WRITE_CMD="${WRITE_CMD:-durum demo --worker-only --store /mnt/store /files}" \
        VERIFY_CMD="${VERIFY_CMD:-$verify}" \
        tests/power-vm/run.sh
}

# A kernel that promises no more memory than it has, which no process can ask for itself alone: stores work, and what is
# too much is refused by the name of the setting. The machine is the harness's own, so the cuts come for nothing.
strict_rounds() {
    local binary
    binary=$(cargo test --no-run -p durum-tests --test addresses --message-format=json 2>/dev/null |
        grep -o '"executable":"[^"]*/addresses-[^"]*"' | cut -d '"' -f 4) || return 1
    # shellcheck disable=SC2016 # for the guest
    env PAYLOAD="$counter $binary" \
        SETUP_CMD='echo 2 >/proc/sys/vm/overcommit_memory && mkdir /mnt/strict || exit
            DURUM_TEST_DIRECTORY=/mnt/strict /bin/addresses-* works_where --ignored --nocapture >/tmp/told 2>&1
            cat /tmp/told
            grep "1 passed" /tmp/told' \
        STAT_CMD=mount STAT_EXPECT="$mount_pattern" WRITE_CMD="counter $counter_mode /mnt/counter" \
        VERIFY_CMD='counter verify /mnt/counter' ROUNDS=1 tests/power-vm/run.sh
}

step harness counter_rounds "$counter_mode" kept
step canary counter_rounds "$canary_mode" lost
step durum durum_rounds
step strict strict_rounds
say "test-$MEDIUM: $PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
