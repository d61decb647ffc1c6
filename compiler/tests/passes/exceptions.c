// With -fexceptions what ends a transaction would also run when a thread is cancelled: that is an error, where there is
// something to unwind.
// RUN: not %durumcc -fexceptions -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: %durumcc -fexceptions -fnvl-no-transactions -c %s -o %t.o
// RUN: %durumcc -c %s -o %t.o
#include <nvl.h>
void other(void);
// CHECK: error: a transaction in code that is compiled with -fexceptions
void f(nvl_heap_t *h, nvl int *p) {
#pragma nvl atomic heap(h)
    {
        other();
        *p = 1;
    }
}
