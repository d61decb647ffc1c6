// Stores of a block that follow each other: one log for bytes without a gap, and one fence for all.
// RUN: %lowered -O1 | %filecheck
// RUN: %lowered -O0 | FileCheck --check-prefix=SIMPLE %s
#include <nvl.h>

struct record { int a, b; long c; char d; long e; };

// SIMPLE-LABEL: define {{.*}}@inside(
// SIMPLE-COUNT-5: call void @__nvl_log_at(
// CHECK-LABEL: define {{.*}}@inside(
// CHECK: call void @__nvl_tx_begin_at(
// CHECK-NOT: store
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 17,
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 8,
// CHECK-NOT: __nvl_log
// CHECK: call void @__nvl_tx_end_at(
void inside(nvl_heap_t *h, nvl struct record *r, int n) {
#pragma nvl atomic heap(h)
    {
        r->c = 1;
        r->a = n;
        r->b = 2;
        r->e = 3;
        r->d = 4;
    }
}

// Also where the function asks.
// CHECK-LABEL: define {{.*}}@entered(
// CHECK-COUNT-1: call void @__nvl_persist_at(
// CHECK-NOT: call void @__nvl_persist_at(
void entered(nvl struct record *r, nvl struct record *s) {
    r->a = 1;
    s->e = 2;
    r->e = 3;
}

// SIMPLE-LABEL: define {{.*}}@main(
// SIMPLE-COUNT-3: call void @__nvl_persist_at(
// CHECK-LABEL: define {{.*}}@main(
// CHECK: call {{.*}}@__nvl_alloc
// CHECK-NOT: __nvl_persist
// CHECK: call void @__nvl_write_back_at(ptr addrspace(1) %{{.*}}, i64 16,
// CHECK-NOT: call
// CHECK: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 8,
// CHECK: call {{.*}}@nvl_close_at(
// Behind a call of another file nothing is left open.
// CHECK: store i64 4
// CHECK: call void @__nvl_persist_at(
int main(int argc, char **argv) {
    (void)argv;
    nvl_heap_t *heap = nvl_open("heap");
    nvl struct record *r = nvl_alloc_nv(heap, 1, struct record);
    r->a = argc;
    r->b = 2;
    r->c = 3;
    r->e = 3;
    nvl_close(NULL);
    r->e = 4;
    return 0;
}
