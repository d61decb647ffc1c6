// Fixes that an editor can apply, and what comes out of them is right.
// RUN: not %durumcc -fsyntax-only -fdiagnostics-parseable-fixits %s 2>&1 | %filecheck
// RUN: sed /fixes.c/d %s > %t.c && not %durumcc -fsyntax-only -Xclang -fixit %t.c && %durumcc -Wall -fsyntax-only %t.c
#include <nvl.h>

struct list {
    int value;
    struct list *next;
};
// CHECK-DAG: note: member 'next' of 'struct list'
// CHECK-DAG: fix-it:"{{.*}}fixes.c":{8:5-8:5}:"nvl "
// CHECK-DAG: fix-it:"{{.*}}fixes.c":{[[#@LINE+1]]:1-[[#@LINE+1]]:5}:""
nvl int number(nvl_heap_t *h, nvl struct list *l, nvl int n) {
// CHECK-DAG: fix-it:"{{.*}}fixes.c":{[[#@LINE-1]]:51-[[#@LINE-1]]:55}:""
// CHECK-DAG: fix-it:"{{.*}}fixes.c":{[[#@LINE+1]]:28-[[#@LINE+1]]:34}:"backup"
#pragma nvl atomic heap(h) bakcup(l->value)
    l->value = n;
    return 0;
}
