#!/usr/bin/env bash
# The descriptor of `struct t` for pairs of definitions: `same` and `differ` say what must come out.
set -euo pipefail
durumcc=$1
scratch=$2
mkdir -p "$scratch"

descriptor() { # descriptor DEFINITIONS
    printf '#include <nvl.h>\n%s\nvoid f(nvl_heap_t *h) { (void)nvl_get_root(h, struct t); }\n' "$1" >"$scratch/t.c"
    "$durumcc" -S -emit-llvm -o - "$scratch/t.c" | sed -n 's/.*c"nvl1 \([^\\]*\).*/\1/p'
}
compare() { # compare WANTED ONE OTHER
    one=$(descriptor "$2")
    other=$(descriptor "$3")
    [ -n "$one" ] || { echo "no descriptor of: $2" && exit 1; }
    found=differ
    [ "$one" != "$other" ] || found=same
    [ $found = "$1" ] || { echo "should be $1: $2 ($one) and: $3 ($other)" && exit 1; }
}
same() { compare same "$@"; }
differ() { compare differ "$@"; }

differ 'struct t { int a; };' 'struct t { int b; };'
differ 'struct t { int a; };' 'struct t { unsigned a; };'
differ 'struct t { int a; };' 'struct t { float a; };'
differ 'struct t { int a : 3; };' 'struct t { int a : 4; };'
differ 'struct t { unsigned a : 3; };' 'struct t { int a : 3; };'
differ 'struct t { char a[2]; };' 'struct t { char a[3]; };'
differ 'struct t { int n; char a[]; };' 'struct t { int n; };'
differ 'enum e { A }; struct t { enum e a; };' 'enum e { B }; struct t { enum e a; };'
differ 'enum e { A }; struct t { enum e a; };' 'enum e { A = 1 }; struct t { enum e a; };'
differ 'struct t { union { int a; float b; } u; };' 'struct t { union { int a; int b; } u; };'
differ 'struct t { nvl int *p; };' 'struct t { nvl unsigned *p; };'
differ 'struct t { nvl int *p; };' 'struct t { nvl int *nvl_wp p; };'
differ 'struct i { int x; }; struct t { nvl struct i *p; };' 'struct j { int x; }; struct t { nvl struct j *p; };'
# Also behind two pointers.
differ 'struct i { int x; }; struct m { nvl struct i *p; }; struct t { nvl struct m *p; };' \
    'struct i { unsigned x; }; struct m { nvl struct i *p; }; struct t { nvl struct m *p; };'
same 'struct t { long a; };' 'struct t { long long a; };'
same 'struct t { int a; };' 'typedef int number; struct t { const number a; };'
# Where an anonymous type stands does not matter.
same 'struct t { struct { int x; } a; };' '

struct t { struct { int x; } a; };'
same 'struct t { nvl int *p; };' 'struct t { nvl int *nvl p; };'
