// One call announces what a loop writes, if that is known when the loop begins.
// RUN: %lowered -O1 -fno-unroll-loops | %filecheck
// RUN: %lowered -O0 | FileCheck --check-prefix=SIMPLE %s
#include <nvl.h>
#include <stdlib.h>

#define INSIDE _Pragma("nvl atomic heap(h)")

// SIMPLE-LABEL: define {{.*}}@dense(
// SIMPLE: call void @__nvl_log_at({{.*}}, i64 8,
// CHECK-LABEL: define {{.*}}@dense(
// CHECK: %[[N:.*]] = shl {{.*}}i64 %{{.*}}, 3
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 %[[N]],
// CHECK-NOT: __nvl_log
void dense(nvl_heap_t *h, nvl double *a, long n) {
    INSIDE
    for (long i = 0; i < n; i++)
        a[i] = (double)i;
}

// Outside one behind.
// CHECK-LABEL: define {{.*}}@dense_outside(
// CHECK: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 %
// CHECK-NOT: __nvl_persist
void dense_outside(nvl double *a, int n) {
    for (int i = n - 1; i >= 0; i--)
        a[i] = (double)i;
}

// Rows behind each other.
// CHECK-LABEL: define {{.*}}@rows(
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 4800,
// CHECK-NOT: __nvl_log
void rows(nvl_heap_t *h, nvl float a[30][40]) {
    INSIDE
    for (int i = 0; i < 30; i++)
        for (int j = 0; j < 40; j++)
            a[i][j] = (float)(i - j);
}

// Rows of which the loop leaves something out: one call each.
// CHECK-LABEL: define {{.*}}@inner(
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 152,
// CHECK-NOT: __nvl_log
// CHECK: store float
void inner(nvl_heap_t *h, nvl float a[30][40]) {
    INSIDE
    for (int i = 0; i < 30; i++)
        for (int j = 1; j < 39; j++)
            a[i][j] = (float)(i - j);
}

// The same outside of transactions: noted, and one fence behind them all.
// CHECK-LABEL: define {{.*}}@inner_outside(
// CHECK: call void @__nvl_persist_at(ptr addrspace(1) null, i64 0,
// CHECK-NOT: __nvl_persist
// CHECK: call void @__nvl_write_back_at(ptr addrspace(1) %{{.*}}, i64 152,
// CHECK-NOT: __nvl_persist
void inner_outside(nvl float a[30][40]) {
    for (int i = 0; i < 30; i++)
        for (int j = 1; j < 39; j++)
            a[i][j] = (float)(i - j);
}

// All members of each element, by several stores.
// CHECK-LABEL: define {{.*}}@whole(
// CHECK: %[[N:.*]] = mul {{.*}}i64 %{{.*}}, 24
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 %[[N]],
// CHECK-NOT: __nvl_log
struct cell { double x, y; long hits; };
void whole(nvl_heap_t *h, nvl struct cell *c, long n) {
    INSIDE
    for (long i = 0; i < n; i++) {
        c[i].hits++;
        c[i].x = (double)i;
        c[i].y = 0.5;
    }
}

// Not all: nobody may touch what lies between.
// CHECK-LABEL: define {{.*}}@parts(
// CHECK: phi
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 8,
void parts(nvl_heap_t *h, nvl struct cell *c, long n) {
    INSIDE
    for (long i = 0; i < n; i++)
        c[i].hits = i;
}

// In some rounds, but read in each.
// CHECK-LABEL: define {{.*}}@some(
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 %
// CHECK: br i1
// CHECK-NOT: __nvl_log
void some(nvl_heap_t *h, nvl double *a, long n) {
    INSIDE
    for (long i = 0; i < n; i++)
        if (a[i] < 0)
            a[i] = 0;
}

// In some rounds: where it happens.
// CHECK-LABEL: define {{.*}}@some_unread(
// CHECK: phi
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 8,
void some_unread(nvl_heap_t *h, nvl double *a, const double *b, long n) {
    INSIDE
    for (long i = 0; i < n; i++)
        if (b[i] < 0)
            a[i] = 0;
}

// A way out of the loop in the middle: what is stored without a gap is one range, which is noted
// where it has ended; and once more behind the loop, before the fence.
// CHECK-LABEL: define {{.*}}@until.nvl0(
// CHECK: %[[BYTES:.*]] = sub i64
// CHECK: call void @__nvl_write_back_at(ptr addrspace(1) %{{.*}}, i64 %[[BYTES]],
// CHECK: call void @__nvl_write_back_at(ptr addrspace(1) %{{.*}}, i64 %{{.*}},
// CHECK-NEXT: call void @__nvl_persist_at(ptr addrspace(1) null, i64 0,
void until(nvl double *a, double limit) {
    while (*a < limit)
        *a++ = limit;
}
// Calls, transactions: where it happens.
// CHECK-LABEL: define {{.*}}@called.nvl0(
// CHECK: phi
// CHECK: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 8,
// CHECK: call {{.*}}@other(
void other(void);
void called(nvl double *a, long n) {
    for (long i = 0; i < n; i++) {
        a[i] = 1;
        other();
    }
}
// CHECK-LABEL: define {{.*}}@ended(
// CHECK: phi
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 8,
void ended(nvl_heap_t *h, nvl double *a, const double *b, long n) {
    INSIDE
    for (long i = 0; i < n; i++) {
        if (b[i] < 0)
            abort();
        a[i] = b[i];
    }
}
// CHECK-LABEL: define {{.*}}@small(
// CHECK: phi
// CHECK: call void @__nvl_tx_begin
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 8,
// CHECK: call void @__nvl_tx_end
void small(nvl_heap_t *h, nvl double *a, long n) {
    for (long i = 0; i < n; i++)
        INSIDE
        a[i] = 1;
}
// CHECK-LABEL: define {{.*}}@watched.nvl0(
// CHECK: phi
// CHECK: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 8,
void watched(nvl double *a, volatile long *done, long n) {
    for (long i = 0; i < n; i++) {
        a[i] = 1;
        *done = i;
    }
}

// Where nobody can look: noted, and one fence behind the loop.
// CHECK-LABEL: define {{.*}}@scattered.nvl0(
// CHECK: call void @__nvl_write_back_at(ptr addrspace(1) %{{.*}}, i64 %{{.*}},
// CHECK-NEXT: call void @__nvl_persist_at(ptr addrspace(1) null, i64 0,
// CHECK: call void @__nvl_write_back_at(ptr addrspace(1) %{{.*}}, i64 %{{.*}},
void scattered(nvl double *a, const int *place, long n) {
    for (long i = 0; i < n; i++)
        a[place[i]] = 1;
}
