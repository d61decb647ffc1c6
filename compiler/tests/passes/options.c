// Options that leave parts of NVL-C out, to measure what each costs.
// RUN: %lowered -O0 -fnvl-no-transactions | FileCheck --check-prefixes=PLAIN %s
// RUN: %lowered -O2 -fnvl-no-transactions | FileCheck --check-prefixes=PLAIN %s
// RUN: %lowered -O2 -fnvl-no-transactions -fexceptions | FileCheck --check-prefixes=PLAIN %s
// RUN: %lowered -O2 -fnvl-no-clauses | FileCheck --check-prefixes=CLAUSES %s
// RUN: %lowered -O0 -fnvl-no-clobber | FileCheck --check-prefixes=CLOBBER %s
// RUN: %lowered -O2 -fnvl-no-clobber | FileCheck --check-prefixes=CLOBBER %s
// RUN: %lowered -O2 | FileCheck --check-prefixes=ALL %s
// RUN: %lowered -O0 -fnvl-no-counts | FileCheck --check-prefixes=UNCOUNTED %s
// RUN: %lowered -O2 -fnvl-no-counts | FileCheck --check-prefixes=UNCOUNTED %s
// RUN: %lowered -O2 -fnvl-no-counts -fnvl-no-transactions -fnvl-no-checks -fnvl-relaxed | FileCheck --check-prefixes=NOTHING %s
#include <nvl.h>

struct node {
    nvl struct node *next;
    nvl struct node *nvl_wp back;
    long n;
};
struct pair {
    nvl long *one, *two;
};
void use(void);

// The statement is there, and each store of it durable by itself, as anywhere.
// PLAIN-LABEL: @in_clauses(
// PLAIN-NOT: __nvl_tx_begin
// PLAIN-NOT: __nvl_tx_range
// PLAIN-NOT: __nvl_tx_end
// PLAIN: call void @__nvl_persist
// PLAIN-NOT: __nvl_tx_end
// PLAIN: ret void
// CLAUSES-LABEL: @in_clauses(
// CLAUSES: call void @__nvl_tx_begin_at(ptr {{.*}}, i32 noundef 1, i32 noundef 1,
// CLAUSES-NOT: __nvl_tx_range
// CLAUSES: call void @__nvl_log
// CLAUSES: call void @__nvl_tx_end
// CLOBBER-LABEL: @in_clauses(
// CLOBBER: call void @__nvl_tx_begin_at(ptr {{.*}}, i32 noundef 1, i32 noundef 1,
// CLOBBER: call void @__nvl_tx_range_at(ptr {{.*}}, i32 noundef 1,
// CLOBBER: call void @__nvl_tx_range_at(ptr {{.*}}, i32 noundef 3,
// CLOBBER: call void @__nvl_tx_range_at(ptr {{.*}}, i32 noundef 1,
// CLOBBER: call void @__nvl_tx_end
// ALL-LABEL: @in_clauses(
// ALL: call void @__nvl_tx_begin_at(ptr {{.*}}, i32 noundef 2, i32 noundef 1,
// ALL: call void @__nvl_tx_range_at(ptr {{.*}}, i32 noundef 2,
// ALL: call void @__nvl_tx_range_at(ptr {{.*}}, i32 noundef 3,
// ALL: call void @__nvl_tx_range_at(ptr {{.*}}, i32 noundef 1,
void in_clauses(nvl_heap_t *h, nvl long *p, nvl long *q, nvl long *r) {
#pragma nvl atomic heap(h) clobber(p [0:2]) readonly(q [0:2]) backup(*r) default(clobber)
    {
        p[0] = q[0];
        use();
        *r = q[1];
    }
}

// Pointers are stored as numbers are, weak ones and whole structs by the runtime: it knows what is weak in them.
// UNCOUNTED-LABEL: @link(
// UNCOUNTED: store ptr addrspace(1) %{{.*}}, ptr addrspace(1) %{{.*}}, align 8
// UNCOUNTED: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 8,
// UNCOUNTED-NOT: __nvl_store_ptr
// UNCOUNTED: call void @__nvl_store_weak_at(
// UNCOUNTED: ret void
// NOTHING-LABEL: @link(
// NOTHING: store ptr addrspace(1)
// NOTHING-NOT: __nvl_persist
// NOTHING: call void @__nvl_store_weak_at(
void link(nvl struct node *p, nvl struct node *q) {
    p->next = q;
    p->back = q;
}
// UNCOUNTED-LABEL: @link_inside(
// UNCOUNTED: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 8,
// UNCOUNTED: store ptr addrspace(1)
// UNCOUNTED: call void @__nvl_tx_end
// Who calls it may be in a transaction of code that has some.
// NOTHING-LABEL: @link_inside(
// NOTHING-NOT: __nvl_tx_begin
// NOTHING: call void @__nvl_log_at(
// NOTHING: store ptr addrspace(1)
// NOTHING-NOT: call
// NOTHING: ret void
void link_inside(nvl_heap_t *h, nvl struct node *p, nvl struct node *q) {
#pragma nvl atomic heap(h)
    p->next = q;
}
// UNCOUNTED-LABEL: @copy(
// UNCOUNTED: call void @__nvl_copy_at(
void copy(nvl struct pair *p, nvl struct pair *q) { *p = *q; }
// What is allocated stays: nobody counts who leads there.
// UNCOUNTED-LABEL: @make(
// UNCOUNTED: call ptr addrspace(1) @__nvl_alloc_pinned_at(
// UNCOUNTED: call void @__nvl_set_root_at(
void make(nvl_heap_t *h) { nvl_set_root(h, nvl_alloc_nv(h, 1, struct node)); }
// NOTHING-LABEL: @less(
// NOTHING-NOT: call
// NOTHING: ret i32
int less(nvl long *p, nvl long *q) { return p < q; }
