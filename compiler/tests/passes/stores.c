// Plain stores: durable behind, or with -fnvl-relaxed not; logged before, in transactions. Lines come without -g, and leave no trace.
// RUN: %lowered -O0 | %filecheck --check-prefixes=CHECK,T0
// RUN: %lowered -O2 | %filecheck --check-prefixes=CHECK,T0
// RUN: %lowered -O1 -fnvl-relaxed | %filecheck --check-prefixes=CHECK,RELAXED
// RUN: %lowered -O2 -g | %filecheck --check-prefix=DEBUG
#include <nvl.h>
#include <string.h>

// DEBUG: !DICompileUnit(
// CHECK-NOT: DICompileUnit
// Entered at its own name it asks where it is.
// CHECK-LABEL: define {{.*}}void @plain(
// CHECK: %[[PLACE:.*]] = {{.*}}call ptr @__nvl_tx_depth()
// CHECK: %[[DEPTH:.*]] = load i32, ptr %[[PLACE]]
// CHECK: icmp sgt i32 %[[DEPTH]], 0
// CHECK: musttail call void @plain.nvltx(
// CHECK: musttail call void @plain.nvl0(
// CHECK-LABEL: define internal {{.*}}void @plain.nvl0(
// CHECK-NOT: __nvl_log
// CHECK: store i32
// T0: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 4, ptr {{.*}}@__nvl_file, i32 29)
// RELAXED-NOT: call
// CHECK: ret void
// CHECK-LABEL: define internal {{.*}}void @plain.nvltx(
// CHECK: call void @__nvl_log_at(ptr addrspace(1) %[[P:.*]], i64 4, ptr {{.*}}@__nvl_file, i32 29)
// CHECK: store i32 %{{.*}}, ptr addrspace(1) %[[P]]
// CHECK-NOT: call
// CHECK: ret void
void plain(nvl int *p, int n) { *p = n; }

// One version, if all stores are in transactions of the function's own.
// CHECK-LABEL: define {{.*}}void @lexical(
// CHECK-NOT: __nvl_tx_depth
// CHECK: call void @__nvl_tx_begin_at(
// CHECK: call void @__nvl_log_at(ptr addrspace(1)
// CHECK: store i32
// CHECK: call void @__nvl_tx_end_at(
// CHECK-NOT: @lexical.nvl
void lexical(nvl_heap_t *h, nvl int *p, int n) {
#pragma nvl atomic heap(h)
    *p = n;
}

// CHECK-LABEL: define internal {{.*}}@atomic.nvl0(
// CHECK: atomicrmw add
// T0: call void @__nvl_persist_at(
// CHECK: cmpxchg
// T0: call void @__nvl_persist_at(
// CHECK-LABEL: define internal {{.*}}@atomic.nvltx(
// CHECK: call void @__nvl_log_at(
// CHECK: atomicrmw add
// CHECK: call void @__nvl_log_at(
// CHECK: cmpxchg
int atomic(nvl _Atomic int *p, nvl int *q, int old) {
    (*p)++;
    return __atomic_compare_exchange_n(q, &old, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// A copy of plain data knows by itself what to log, and is made durable behind.
// CHECK-LABEL: define internal {{.*}}@copied.nvl0(
// CHECK: call void @__nvl_copy_at(
// T0: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 %
// CHECK-LABEL: define internal {{.*}}@copied.nvltx(
// CHECK-NOT: __nvl_log
// CHECK: call void @__nvl_copy_at(
// CHECK-NOT: __nvl_persist
// CHECK: ret
void copied(nvl double *p, const double *q, size_t n) { memcpy(p, q, n); }
