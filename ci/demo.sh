#!/usr/bin/env bash
# Builds the `durum` command and durumd, and runs `durum demo` with the arguments given. Without arguments it then shows
# durumcc: the matrix multiplication of examples/nvl is killed and goes on, and gives what plain C gives.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_cargo
# All of it before anything is built.
case $# in
0) ci/deps.sh build compiler ;;
*) ci/deps.sh build ;;
esac
# `durum demo --daemon` starts the service that lies beside it.
cargo build --release -p durum-cli --bin durum -p durumd --bin durumd
cargo run --release --quiet -p durum-cli --bin durum -- demo "$@"
[ $# = 0 ] || exit 0

prefix=$CARGO_TARGET_DIR/durumcc
[ -x "$prefix/bin/durumcc" ] || say "building durumcc, for programs in NVL-C, to $prefix (a minute or two)"
ci/durumcc.sh "$prefix" >/dev/null
PROGRAMS=matmul LD_LIBRARY_PATH=$prefix/lib examples/nvl/test.sh "$prefix/bin/durumcc" "-I$prefix/include"
