#!/usr/bin/env bash
# Installs the Debian packages that a check needs and that are missing.
#
#   ci/deps.sh GROUP...
#
# With root or a sudo that asks nothing it runs apt-get; otherwise it names the packages and exits 2.
# What is there is found by its command or file, so a satisfied call takes milliseconds and no network.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# group, what shows that it is there (a command, or a file's path), package
packages() {
    cat <<'TABLE'
build   cc                              gcc
build   /usr/include/stdio.h            libc6-dev
lint    clang-format                    clang-format
lint    python3                         python3
browser chromium-headless-shell         chromium-headless-shell
bench   cc                              gcc
bench   /usr/include/stdio.h            libc6-dev
bench   /usr/include/libpmemobj.h       libpmemobj-dev
bench   /usr/include/leveldb/c.h        libleveldb-dev
bench   /usr/include/lmdb.h             liblmdb-dev
bench   pkg-config                      pkg-config
capi    gcc                             gcc
capi    g++                             g++
capi    /usr/include/stdio.h            libc6-dev
capi    cmake                           cmake
capi    pkg-config                      pkg-config
judge   gcc                             gcc
judge   /usr/include/stdio.h            libc6-dev
judge   strace                          strace
judge   python3                         python3
capi    valgrind                        valgrind
compilers gcc-11                        gcc-11
compilers gcc-12                        gcc-12
compilers gcc-13                        gcc-13
compilers gcc-14                        gcc-14
compilers g++-11                        g++-11
compilers g++-12                        g++-12
compilers g++-13                        g++-13
compilers g++-14                        g++-14
compilers clang-13                      clang-13
compilers clang-14                      clang-14
compilers clang-15                      clang-15
compilers clang-16                      clang-16
compilers clang-17                      clang-17
compilers clang-18                      clang-18
compilers clang-19                      clang-19
cpp     g++                             g++
cpp     clang++                         clang
cpp     /var/lib/dpkg/info/libclang-rt-dev.list libclang-rt-dev
cpp     /usr/include/gtest/gtest.h      libgtest-dev
compiler clang-19                      clang-19
compiler /usr/include/stdio.h           libc6-dev
compiler cmake                          cmake
compiler g++                            g++
compiler make                           make
compiler llvm-config-19                 llvm-19-dev
compiler /usr/lib/llvm-19/include/clang/AST/Decl.h libclang-19-dev
compiler /usr/lib/llvm-19/bin/FileCheck llvm-19-tools
compiler python3                        python3
compiler ccache                         ccache
compiler /usr/lib/llvm-19/bin/ld.lld    lld-19
compiler clangd-19                      clangd-19
compiler /usr/lib/llvm-19/lib/clang/19/lib/linux libclang-rt-19-dev
aarch64 aarch64-linux-gnu-gcc           gcc-aarch64-linux-gnu
aarch64 /usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross
aarch64 qemu-aarch64-static             qemu-user-static
service systemd-analyze                 systemd
power   qemu-system-x86_64              qemu-system-x86
power   /var/lib/dpkg/info/busybox-static.list busybox-static
power   cpio                            cpio
power   mkfs.ext4                       e2fsprogs
power   xz                              xz-utils
power   nbdkit                          nbdkit
power   /usr/lib/x86_64-linux-gnu/nbdkit/plugins/nbdkit-python-plugin.so nbdkit-plugin-python
TABLE
}

there() {
    case $1 in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

missing_packages() { # missing_packages GROUP...
    local group probe package wanted
    for wanted in "$@"; do
        packages | grep -q "^$wanted " || refuse "ci/deps.sh: no group called '$wanted'"
    done
    packages | while read -r group probe package; do
        for wanted in "$@"; do
            [ "$group" != "$wanted" ] || there "$probe" || printf '%s\n' "$package"
        done
    done | sort -u | tr '\n' ' '
}

[ $# -gt 0 ] || refuse "usage: ci/deps.sh GROUP... (groups: $(packages | cut -d' ' -f1 | sort -u | tr '\n' ' '))"
missing=$(missing_packages "$@")
# Each system has some of these compilers: those that it does not know are not missed.
[ "$*" != compilers ] || missing=$(for name in $missing; do
    if apt-cache policy "$name" 2>/dev/null | grep -q 'Candidate: [0-9]'; then printf '%s ' "$name"; fi
done)
missing=${missing% }
[ -n "$missing" ] || exit 0

how="Missing Debian packages: $missing
Install them with: sudo apt-get install --no-install-recommends $missing"
command -v apt-get >/dev/null || refuse "$how
(There is no apt-get here: take your system's packages of the same contents.)"
if [ "$(id -u)" = 0 ]; then
    as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
else
    refuse "$how"
fi

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}
read -ra names <<<"$missing"
install() { apt install --no-install-recommends "${names[@]}"; }

say "Installing Debian packages: $missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The package lists may be absent (a new container) or older than the archive; only then are they fetched.
for try in 1 2 3; do
    if [ "$try" -gt 1 ] || ! apt-cache show "${names[@]}" >/dev/null 2>&1; then
        apt update >>"$log" 2>&1 || true
    fi
    if install >>"$log" 2>&1; then
        still=
        [ "$*" = compilers ] || still=$(missing_packages "$@")
        [ -z "$still" ] || refuse "Installed, but still not found: $still"
        exit 0
    fi
    sleep $((try * 3))
done
tail -n 20 "$log" >&2
refuse "apt-get could not install them. $how"
