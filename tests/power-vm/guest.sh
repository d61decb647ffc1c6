#!/usr/bin/env bash
# Builds what the guest boots from: a Debian kernel with the modules of ext4, of persistent memory and of disks, and an
# initramfs with busybox, the payload and its shared libraries.
#
#   guest.sh kernel CACHE                      -> CACHE/vmlinuz, CACHE/modules/*.ko
#   guest.sh initramfs CACHE STAGES OUT FILE...   -> OUT; STAGES is a folder of scripts, one a stage
#
# Programs among FILE go to /bin, everything else to /files.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# In the order in which they load. What a kernel has built in has no file and is left out.
MODULES="libnvdimm nd_btt nd_pmem nd_e820 virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk crc16 crc32c_generic libcrc32c mbcache jbd2 ext4"

refuse() {
    printf '%s\n' "$*" >&2
    exit 2
}

# The package is taken apart, not installed: the machine's own boot files stay as they are.
fetch_kernel() {
    local cache=$1 package work
    [ ! -f "$cache/complete" ] || return 0
    command -v apt-get >/dev/null || refuse "power-vm: the guest's kernel comes from a Debian archive, and there is no apt-get here"
    [ "$(uname -m)" = x86_64 ] || refuse "power-vm: the guest is x86-64; this machine is $(uname -m)"
    package=$(kernel_package)
    if [ -z "$package" ] && [ "$(id -u)" = 0 ]; then
        apt-get -q update >/dev/null
        package=$(kernel_package)
    fi
    [ -n "$package" ] || refuse "power-vm: apt knows no linux-image-amd64; run: sudo apt-get update"
    printf 'power-vm: taking the guest kernel from %s\n' "$package"
    rm -rf "$cache" && mkdir -p "$cache/modules"
    work=$(mktemp -d)
    # The archive drops old kernels: when the list is older than that, fetch the list and try again.
    if ! download "$work" "$package"; then
        [ "$(id -u)" != 0 ] || apt-get -q update >/dev/null || true
        package=$(kernel_package)
        download "$work" "$package" || { rm -rf "$work" && refuse "power-vm: $package could not be downloaded; run: sudo apt-get update"; }
    fi
    dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work" --wildcards './boot/vmlinuz-*' './lib/modules/*.ko*' \
        './usr/lib/modules/*.ko*' 2>/dev/null || true
    # The version is the file's, not that of the kernel that runs here.
    cp "$work"/boot/vmlinuz-* "$cache/vmlinuz"
    for module in $MODULES; do
        local file
        file=$(find "$work" -name "$module.ko*" | head -n 1)
        case $file in
        *.ko) cp "$file" "$cache/modules/" ;;
        *.ko.xz) xz -dc "$file" >"$cache/modules/$module.ko" ;;
        *.ko.zst) zstd -qdc "$file" >"$cache/modules/$module.ko" ;;
        *) continue ;;
        esac
        printf '%s\n' "$module" >>"$cache/modules.order"
    done
    rm -rf "$work"
    grep -q '^nd_e820$' "$cache/modules.order" || refuse "power-vm: $package has no nd_e820 module"
    grep -q '^virtio_blk$' "$cache/modules.order" || refuse "power-vm: $package has no virtio_blk module"
    touch "$cache/complete"
}

kernel_package() {
    apt-cache depends linux-image-amd64 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1
}

download() { (cd "$1" && apt-get -q -o Acquire::Retries=3 download "$2" >/dev/null 2>&1); }

add_program() { # add_program ROOT FILE: into /bin, with the libraries that it is linked to
    local root=$1 file=$2 library
    install -m 755 "$file" "$root/bin/$(basename "$file")"
    strip "$root/bin/$(basename "$file")" 2>/dev/null || true
    for library in $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | sort -u); do
        install -D -m 755 "$library" "$root$library"
    done
}

build_initramfs() {
    local cache=$1 stages=$2 out=$3 root
    shift 3
    root=$(mktemp -d)
    mkdir -p "$root"/{bin,dev,etc,proc,sys,tmp,mnt,lib/modules,files}
    cp /bin/busybox "$root/bin/busybox"
    cp "$here/init" "$root/init" && chmod 755 "$root/init"
    cp "$cache"/modules/*.ko "$root/lib/modules/"
    cp "$cache/modules.order" "$root/etc/modules.order"
    cp -r "$stages" "$root/etc/stage"
    for file in "$@"; do
        if [ -f "$file" ] && [ -x "$file" ]; then
            add_program "$root" "$file"
        else
            cp -rL "$file" "$root/files/"
        fi
    done
    (cd "$root" && find . | cpio --quiet -o -H newc -R 0:0) >"$out"
    rm -rf "$root"
}

case ${1:-} in
kernel) fetch_kernel "$2" ;;
initramfs) shift && build_initramfs "$@" ;;
*) refuse "usage: guest.sh kernel CACHE | initramfs CACHE STAGES OUT FILE..." ;;
esac
