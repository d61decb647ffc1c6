// The statement may begin in another file than the pragma, behind what is left out, and in a macro.
// RUN: %ir -O0 | %filecheck
#include <nvl.h>
#define STORE(p, n) *(p) = (n)

// CHECK-LABEL: @at_end(
void at_end(nvl_heap_t *h, nvl int *p, int n) {
// CHECK: call void @__nvl_tx_begin(
// CHECK: store i32 %{{.*}}, ptr addrspace(1)
// CHECK-NEXT: call void @__nvl_tx_end(
#include "inputs/pragma-at-end.h"
    STORE(p, n);
}
