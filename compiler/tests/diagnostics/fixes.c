// Fixes that an editor can apply.
// RUN: not %durumcc -fsyntax-only -fdiagnostics-parseable-fixits %s 2>&1 | %filecheck
#include <nvl.h>

struct list {
    int value;
    struct list *next;
};
// CHECK-DAG: note: member 'next' of 'struct list'
// CHECK-DAG: fix-it:"{{.*}}fixes.c":{7:5-7:5}:"nvl "
void f(nvl_heap_t *h, nvl struct list *l) {
// CHECK-DAG: fix-it:"{{.*}}fixes.c":{[[#@LINE+1]]:28-[[#@LINE+1]]:34}:"backup"
#pragma nvl atomic heap(h) bakcup(l->value)
    l->value = 1;
}
