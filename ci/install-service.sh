#!/usr/bin/env bash
# Installs durumd, its systemd units with the user and the directories that they need, and its manual page. A part of
# ci/install.sh.
#
#   PREFIX=/usr/local DESTDIR= ci/install-service.sh BUILT    the directory that cargo has put durumd into
set -euo pipefail
. "$(dirname "$0")/lib.sh"

built=${1:?usage: [PREFIX=DIR] [DESTDIR=DIR] ci/install-service.sh BUILT}
PREFIX=${PREFIX:-/usr/local}
target=${DESTDIR:-}$PREFIX
from=crates/durumd/systemd

install -d "$target/bin" "$target/lib/systemd/system" "$target/lib/sysusers.d" "$target/lib/tmpfiles.d" \
    "$target/share/man/man8"
# A new inode: a service that runs keeps its own.
install -m 755 "$built/durumd" "$target/bin/durumd"
for unit in "$from"/*.in; do
    file=$target/lib/systemd/system/$(basename "$unit" .in)
    sed "s|@PREFIX@|$PREFIX|g" "$unit" >"$file"
    chmod 644 "$file"
done
install -m 644 "$from/sysusers.conf" "$target/lib/sysusers.d/durumd.conf"
install -m 644 "$from/tmpfiles.conf" "$target/lib/tmpfiles.d/durumd.conf"
install -m 644 docs/man/durumd.8 "$target/share/man/man8/"
