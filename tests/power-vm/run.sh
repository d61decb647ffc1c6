#!/usr/bin/env bash
# Cuts the power of a virtual machine while a program writes to ext4, and checks what it finds after the
# next boot. The power cut is SIGKILL to QEMU: processes, kernel and page cache of the guest are gone.
# The file system lies on one of two media:
#   dax    the memory that plays the persistent one is a file and stays. QEMU emulates no write-back
#          cache, so a missing cache-line flush does not show here (the crash simulator is for that);
#          missing syncs of files, sizes and names do, and so do detection, mapping and recovery after
#          a dead kernel.
#   disk   a disk with a write cache, which loses or keeps unflushed sectors by chance (disk.py).
#
# What runs in the guest comes from the environment. Each command is a line for sh, its folder /mnt:
#   MEDIUM       dax (default) or disk
#   PAYLOAD      programs and data to copy in (programs to /bin, else to /files), separated by spaces
#   SETUP_CMD    once, before the first write (may be empty)
#   STAT_CMD     once; its output has to match STAT_EXPECT, a pattern of grep -E (may be empty)
#   WRITE_CMD    writes until the power goes; each line "durable N" that it prints is a promise
#   VERIFY_CMD   after each cut, with DURABLE=N in its environment: exit 0 if all that was promised is there
#   ROUNDS       number of power cuts (5)
#   EXPECT=lost  turns the verdict round: some verification has to fail (for canaries)
#   SEED         of the moments of the cuts (random)
#   CUT_MS_MAX   longest time between the begin of a stage and its cut (4000)
#   KEEP=1       keeps the folder with the memory image and the consoles even after a success
#
# Exit: 0 all as promised, 1 something was lost or the guest failed, 2 a prerequisite is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
ROUNDS=${ROUNDS:-5}
SEED=${SEED:-$((($(date +%s) ^ $$) & 32767))}
CUT_MS_MAX=${CUT_MS_MAX:-4000}
EXPECT=${EXPECT:-kept}
MEDIUM=${MEDIUM:-dax}
BOOT_TIMEOUT_S=${BOOT_TIMEOUT_S:-300}
CACHE=${POWER_VM_CACHE:-${CARGO_TARGET_DIR:-$here/../../target}/power-vm}
: "${WRITE_CMD:?}" "${VERIFY_CMD:?}" "${PAYLOAD:?}"

refuse() {
    printf 'power-vm: %s\n' "$*" >&2
    exit 2
}
case $MEDIUM in
dax) tools= ;;
disk) tools=nbdkit ;;
*) refuse "MEDIUM is dax or disk, not '$MEDIUM'" ;;
esac
for tool in qemu-system-x86_64 mkfs.ext4 cpio /bin/busybox $tools; do
    command -v "$tool" >/dev/null || refuse "$tool not found (ci/deps.sh power installs it)"
done

# The image is sparse; 1 GiB of it can fill. Memory is faster than a disk, where there is enough.
scratch=${TMPDIR:-/tmp}
[ "$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')" -lt 3000 ] 2>/dev/null || scratch=/dev/shm
work=$(mktemp -d "$scratch/durum-power-vm.XXXXXX")
qemu=
disk=
finish() {
    local code=$?
    [ -z "$disk" ] || kill -9 "$disk" 2>/dev/null || true
    [ -z "$qemu" ] || kill -9 "$qemu" 2>/dev/null || true
    if [ "$code" = 0 ] && [ -z "${KEEP:-}" ]; then
        rm -rf "$work"
    elif [ "$code" != 2 ]; then
        echo "power-vm: consoles and the image are in $work; replay the moments of the cuts with SEED=$SEED"
    fi
}
trap finish EXIT
trap 'exit 1' INT TERM

"$here/guest.sh" kernel "$CACHE"
mkdir "$work/stages"
for stage in setup stat write verify; do
    name=$(printf '%s' "$stage" | tr '[:lower:]' '[:upper:]')_CMD
    printf '%s\n' "${!name:-true}" >"$work/stages/$stage"
done
# shellcheck disable=SC2086 # a list of files
"$here/guest.sh" initramfs "$CACHE" "$work/stages" "$work/initramfs" $PAYLOAD
case $MEDIUM in
dax)
    # The second GiB's first half is the persistent memory, 131072 blocks of 4 KiB.
    truncate -s 2G "$work/ram.img"
    mkfs.ext4 -q -b 4096 -F -E offset=1073741824 "$work/ram.img" 131072
    # KVM hung at boot with this memory layout.
    machine=(-m 2G -machine "pc,memory-backend=ram"
        -object "memory-backend-file,id=ram,share=on,mem-path=$work/ram.img,size=2G")
    kernel_words='memmap=512M!1G'
    ;;
disk)
    truncate -s 512M "$work/disk.img"
    mkfs.ext4 -q -b 4096 -F "$work/disk.img"
    machine=(-m 1G -machine pc
        -drive "file=nbd+unix:///?socket=$work/disk.sock,format=raw,if=virtio,cache=writeback")
    kernel_words=
    ;;
esac

plug_disk() { # plug_disk NAME: the disk of one boot; ends when QEMU does, and then loses power
    rm -f "$work/disk.sock" "$work/disk.pid"
    nbdkit --foreground --verbose --exit-with-parent --unix "$work/disk.sock" --pidfile "$work/disk.pid" \
        python "$here/disk.py" "file=$work/disk.img" "seed=$RANDOM" </dev/null >"$work/$1.disk" 2>&1 &
    disk=$!
    local tries=0
    while [ ! -s "$work/disk.pid" ]; do
        tries=$((tries + 1))
        if [ "$tries" = 200 ] || ! kill -0 "$disk" 2>/dev/null; then
            cat "$work/$1.disk"
            refuse "the disk does not start (nbdkit)"
        fi
        sleep 0.05
    done
}

# What the disk's cache loses, it loses when the connection has ended.
sectors_lost=0
unplug_disk() { # unplug_disk NAME
    [ -n "$disk" ] || return 0
    local deadline=$((SECONDS + 60)) line
    while ! grep -q 'power lost:' "$work/$1.disk" && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.05; done
    kill "$disk" 2>/dev/null || true
    wait "$disk" 2>/dev/null || true
    disk=
    line=$(sed -n 's/.*power lost: //p' "$work/$1.disk" | tail -n 1)
    [ -n "$line" ] || refuse "the disk did not lose its power (see $work/$1.disk)"
    sectors_lost=$((sectors_lost + ${line%% *}))
}

boot() { # boot NAME STAGES DURABLE: starts the guest in the background, with its console in a file
    boot_name=$1
    console=$work/$1.console
    : >"$console"
    [ "$MEDIUM" = dax ] || plug_disk "$1"
    # Software emulation works everywhere.
    qemu-system-x86_64 -accel tcg -cpu max "${machine[@]}" \
        -kernel "$CACHE/vmlinuz" -initrd "$work/initramfs" \
        -append "console=ttyS0 quiet panic=-1 $kernel_words medium=$MEDIUM stages=$2 durable=$3 round=$1" \
        -display none -monitor none -nic none -no-reboot -serial "file:$console" \
        </dev/null >"$work/$1.qemu" 2>&1 &
    qemu=$!
}

alive() { kill -0 "$qemu" 2>/dev/null; }

# Waits until the console shows a line that starts with the text given; 1 if the guest ended before.
wait_for() {
    local deadline=$((SECONDS + BOOT_TIMEOUT_S)) running
    while :; do
        running=yes
        alive || running=
        ! grep -aq "^$1" "$console" || return 0
        [ -n "$running" ] || return 1
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

cut_power() {
    kill -9 "$qemu"
    wait "$qemu" 2>/dev/null || true
    qemu=
    unplug_disk "$boot_name"
}

stop_guest() { # the guest switches itself off; a hanging one is killed
    local deadline=$((SECONDS + 60))
    while alive && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.05; done
    ! alive || kill -9 "$qemu"
    wait "$qemu" 2>/dev/null || true
    qemu=
    unplug_disk "$boot_name"
}

ended_with() { tr -d '\r' <"$console" | sed -n "s/^@power-vm end $1 //p" | tail -n 1; }

# The largest promise on the console. A line that the cut left half is a smaller number, so still true.
promised() { tr -d '\r' <"$console" | sed -n 's/^durable \([0-9][0-9]*\).*/\1/p' | sort -n | tail -n 1; }

show() { # the last lines of a stage
    tr -d '\r' <"$console" | sed -n "/^@power-vm begin $1/,/^@power-vm end $1/p" | tail -n "${2:-12}" | sed 's/^/    /'
}

guest_failed() {
    echo "power-vm: round $1: the guest ended early or said nothing for $BOOT_TIMEOUT_S s:"
    tail -n 25 "$console" | sed 's/^/    /'
    cat "$work/$1.qemu"
    exit 1
}

sleep_ms() { sleep "$(($1 / 1000)).$(printf '%03d' $(($1 % 1000)))"; }

RANDOM=$SEED
durable=0 verified=0 cuts=0 recovery_cuts=0
echo "power-vm: $ROUNDS power cuts, seed $SEED"

# Judges the verification on the console, if it came to an end; ends the run at a bad one.
judge_verify() { # judge_verify ROUND
    local code
    code=$(ended_with verify)
    [ -n "$code" ] || return 0
    if [ "$code" = 0 ]; then
        verified=$((verified + 1))
        return
    fi
    echo "power-vm: round $1: '$VERIFY_CMD' failed with $code; $durable was promised:"
    show verify
    stop_guest
    [ "$EXPECT" = lost ] || exit 1
    echo "power-vm: seed $SEED: lost after $cuts power cuts, as this canary has to"
    exit 0
}

# Each boot verifies what the last cut left, and all but the last go on writing until the next cut.
round=1
while [ "$round" -le "$ROUNDS" ]; do
    if [ "$round" = 1 ]; then stages=setup,stat,write; else stages=verify,write; fi
    boot "$round" "$stages" "$durable"
    victim="write"
    # Every third cut or so hits the verification, and with it the recovery, of the cut before.
    [ "$round" = 1 ] || [ $((RANDOM % 3)) != 0 ] || victim="verify"
    delay_ms=$((RANDOM % CUT_MS_MAX))
    if [ "$victim" = verify ]; then
        wait_for '@power-vm begin verify' || guest_failed "$round"
        # Recovery is short: most of these cuts have to come early.
        delay_ms=$((delay_ms / 8))
        recovery_cuts=$((recovery_cuts + 1))
    else
        if [ "$round" != 1 ]; then
            wait_for '@power-vm end verify [0-9]' || guest_failed "$round"
            judge_verify "$round"
        fi
        wait_for '@power-vm begin write' || guest_failed "$round"
    fi
    if [ "$round" = 1 ] && [ -n "${STAT_EXPECT:-}" ]; then
        show stat 30 | grep -v "@power-vm" | grep -Eq "$STAT_EXPECT" || {
            echo "power-vm: the output of '$STAT_CMD' does not match '$STAT_EXPECT':"
            show stat
            exit 1
        }
        echo "power-vm: $STAT_CMD: matches '$STAT_EXPECT'"
    fi
    sleep_ms "$delay_ms"
    # A cut that was aimed at the verification may have come too late for it.
    [ "$victim" != verify ] || judge_verify "$round"
    ! grep -aq '^@power-vm end write' "$console" || {
        echo "power-vm: round $round: '$WRITE_CMD' ended before the power cut:"
        show write
        exit 1
    }
    ! grep -aq '^@power-vm fail' "$console" || guest_failed "$round"
    alive || guest_failed "$round"
    cut_power
    cuts=$((cuts + 1))
    new=$(promised)
    [ -z "$new" ] || [ "$new" -lt "$durable" ] || durable=$new
    echo "power-vm: round $round: power cut $delay_ms ms into $victim; durable so far: $durable"
    round=$((round + 1))
done
boot final verify "$durable"
wait_for '@power-vm end verify [0-9]' || guest_failed final
judge_verify final
show verify 8 | grep -v '@power-vm' || true
stop_guest
[ "$EXPECT" = kept ] || {
    echo "power-vm: nothing was lost, but this canary has to lose something: the harness is blind"
    exit 1
}
[ "$MEDIUM" = dax ] || echo "power-vm: the disk lost $sectors_lost sectors that were written and not flushed"
echo "power-vm: seed $SEED: $cuts power cuts ($recovery_cuts of them aimed at recovery), $verified verifications, nothing lost"
