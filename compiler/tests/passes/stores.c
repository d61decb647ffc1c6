// Plain stores: durable behind, or with -fnvl-relaxed not; logged before, in transactions. Lines come without -g, and
// leave no trace.
// RUN: %lowered -O0 | %filecheck --check-prefixes=CHECK,T0
// RUN: %lowered -O2 | %filecheck --check-prefixes=CHECK,T0
// RUN: %lowered -O1 -fnvl-relaxed | %filecheck --check-prefixes=CHECK,RELAXED
// RUN: %lowered -O2 -fopenmp | %filecheck --check-prefixes=CHECK,T0
// RUN: %lowered -O2 -g | %filecheck --check-prefix=DEBUG
#include <nvl.h>
#include <string.h>

// DEBUG: !DICompileUnit(
// CHECK-NOT: DICompileUnit
// Entered from anywhere it asks once where it is.
// CHECK-LABEL: define {{.*}}void @plain(
// CHECK: %[[PLACE:.*]] = {{.*}}call ptr @__nvl_tx_depth()
// CHECK-NEXT: load i32, ptr %[[PLACE]]
// CHECK: br i1
// CHECK-NOT: @__nvl_tx_depth
// CHECK-DAG: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 4, ptr {{.*}}@__nvl_file, i32 24)
// T0-DAG: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 4, ptr {{.*}}@__nvl_file, i32 24)
// RELAXED-NOT: __nvl_persist
// CHECK: ret void
// CHECK-NOT: @plain.nvl
void plain(nvl int *p, int n) { *p = n; }

// Nothing to ask, if all stores are in transactions of the function's own.
// CHECK-LABEL: define {{.*}}void @lexical(
// CHECK-NOT: __nvl_tx_depth
// CHECK: call void @__nvl_tx_begin_at(
// CHECK: call void @__nvl_log_at(ptr addrspace(1)
// CHECK: store i32
// CHECK: call void @__nvl_tx_end_at(
void lexical(nvl_heap_t *h, nvl int *p, int n) {
#pragma nvl atomic heap(h)
    *p = n;
}

// CHECK-LABEL: define {{.*}}@atomic(
// CHECK-DAG: call void @__nvl_log_at({{.*}}, i64 4,
// CHECK-DAG: atomicrmw add
// T0-DAG: call void @__nvl_persist_at({{.*}}, i64 4,
// CHECK-DAG: cmpxchg
// CHECK-DAG: call void @__nvl_log_at({{.*}}, i64 4,
// T0-DAG: call void @__nvl_persist_at({{.*}}, i64 4,
int atomic(nvl _Atomic int *p, nvl int *q, int old) {
    (*p)++;
    return __atomic_compare_exchange_n(q, &old, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// A copy of plain data knows by itself what to log, and is made durable behind.
// CHECK-LABEL: define {{.*}}@copied(
// CHECK-NOT: __nvl_log
// CHECK: call void @__nvl_copy_at(
// CHECK-NOT: __nvl_log
// T0: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 %
// CHECK: ret
void copied(nvl double *p, const double *q, size_t n) { memcpy(p, q, n); }
