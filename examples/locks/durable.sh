#!/usr/bin/env bash
# Makes the programs of this folder durable: patches copies of them, and compiles these with durumcc.
#
#   durable.sh DURUMCC DIR [OPTION...]
#
# DIR has `cache` and `store` then, and `kill_structures` and `kill_store`, which kill what they try. OPTIONs are the
# compiler's.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
durumcc=${1:?the compiler is missing} target=${2:?the directory is missing}
shift 2
options=(-fido -Wall -Wextra -Werror "$@")
cxx=$(dirname "$durumcc")/durumc++

compile() { # compile NAME SOURCE...
    local name=$1 source
    shift
    for source in "$@"; do
        compiler=("$durumcc" -std=c11)
        [[ $source = *.c ]] || compiler=("$cxx" -std=c++17)
        "${compiler[@]}" "${options[@]}" "-I$target/source/$name" -c "$source" -o "$target/$name.o/$(basename "$source").o"
    done
}

mkdir -p "$target"
for name in cache structures store; do
    mkdir -p "$target/source/$name" "$target/$name.o"
    cp "$here/$name"/*.[ch]* "$target/source/$name"
    patch --quiet --directory "$target/source/$name" --strip 1 <"$here/$name/durable.patch"
done
sources=$target/source
compile cache "$sources"/cache/*.c &
compile structures "$sources"/structures/*.c "$sources/structures/guarded_stack.cpp" "$here/kills/kill_structures.cpp"
compile store "$sources"/store/*.c "$here/kills/kill_store.c"
wait $!
"$durumcc" "$target"/cache.o/* -o "$target/cache" -pthread
"$cxx" "$target"/structures.o/* -o "$target/kill_structures" -pthread
"$durumcc" "$target"/store.o/{store,run}.c.o -o "$target/store" -lm
"$durumcc" "$target"/store.o/{store,kill_store}.c.o -o "$target/kill_store"
