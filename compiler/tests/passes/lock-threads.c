// Locks of <threads.h>.
// RUN: %clang -O1 -g -S -emit-llvm %s -o - | %print-locks | %filecheck
#include <threads.h>

static mtx_t a;
static cnd_t changed;
extern int value;

// CHECK-LABEL: {{^}}waits: 0..many, returns 0{{(, unwinds [01])?$}}
// CHECK: 0: mtx_lock @a
// CHECK: 1: cnd_wait @a
// CHECK: 1: mtx_unlock @a
void waits(void) {
    mtx_lock(&a);
    while (!value)
        cnd_wait(&changed, &a);
    mtx_unlock(&a);
}

// CHECK-LABEL: {{^}}tries: 0..many, returns 0{{(, unwinds [01])?$}}
// CHECK: 0: mtx_trylock @a
// CHECK: 1: mtx_unlock @a
int tries(void) {
    if (mtx_trylock(&a) != thrd_success)
        return 0;
    value++;
    mtx_unlock(&a);
    return 1;
}
