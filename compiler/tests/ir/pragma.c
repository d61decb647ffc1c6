// What `#pragma nvl atomic` becomes: ways into and out of the statement, clauses, nesting.
// RUN: %ir -O0 -fopenmp | %filecheck
// RUN: %front-end -E -fopenmp %s -o %t.i && %front-end -S -emit-llvm -fopenmp -o - %t.i | %filecheck
#include <nvl.h>

struct s {
    int a[10];
    int n;
    nvl struct s *next;
    nvl struct s *nvl_wp back;
};
#define ROWS 3
#define STRINGIFY(x) #x
#define ATOMIC(h) _Pragma(STRINGIFY(nvl atomic heap(h) clobber(p->a[0:ROWS])))

// CHECK-LABEL: @leave(
int leave(nvl_heap_t *h, nvl struct s *p) {
    for (int i = 0; i < 3; i++) {
// CHECK: call void @__nvl_tx_begin(ptr noundef %[[TX:[0-9]+]], i32 noundef 1, i32 noundef 1, ptr noundef
#pragma nvl atomic heap(h)
        {
            if (p->n == 1)
                break;
            if (p->n == 2)
                continue;
            if (p->n == 3)
                return p->n;
            if (p->n == 4)
                goto out;
            p->n = i;
        }
// One end for all ways out, and the way is taken behind it.
// CHECK: call void @__nvl_tx_end(ptr noundef %[[TX]])
// CHECK-NEXT: %{{.*}} = load i32, ptr %
// CHECK-NEXT: switch i32
    }
out:
    return 0;
}

// CHECK-LABEL: @clauses(
void clauses(nvl_heap_t *h, nvl_heap_t *g, nvl struct s *p, nvl int a[10], int i, int n) {
// CHECK: call void @__nvl_tx_begin(ptr {{.*}}, i32 noundef 2, i32 noundef 2, ptr
// CHECK: call void @__nvl_tx_range(ptr {{.*}}, i32 noundef 1, ptr addrspace(1) {{.*}}, i64 noundef 1, i64 noundef 4)
// CHECK: call void @__nvl_tx_range(ptr {{.*}}, i32 noundef 1, ptr addrspace(1) {{.*}}, i64 noundef 1, i64 noundef 64)
// CHECK: call void @__nvl_tx_range(ptr {{.*}}, i32 noundef 2, ptr addrspace(1) {{.*}}, i64 noundef 3, i64 noundef 4)
// CHECK: call void @__nvl_tx_range(ptr {{.*}}, i32 noundef 3, ptr addrspace(1) {{.*}}, i64 noundef %{{.*}}, i64 noundef 4)
// CHECK: call void @__nvl_tx_range(ptr {{.*}}, i32 noundef 3, ptr addrspace(1) {{.*}}, i64 noundef 1, i64 noundef 4)
// CHECK: call void @__nvl_tx_range(ptr {{.*}}, i32 noundef 1, ptr addrspace(1) {{.*}}, i64 noundef 1, i64 noundef 8)
#pragma nvl atomic heap(h, g) backup(p->n, *p) clobber(p->a[1:ROWS]) \
    readonly(a[i ? 1 : 2 : n ? 2 : 1], a[i]) backup(p->back) default(clobber)
    p->n = a[i];
}

// An index with an effect has it once, also where only the run knows the size.
// CHECK-LABEL: @rows(
void rows(nvl_heap_t *h, int n, nvl int (*a)[n], int i) {
// CHECK: call void @__nvl_tx_begin(
// CHECK: add nsw i32
// CHECK-NOT: add nsw i32
// CHECK: %[[SIZE:[0-9]+]] = mul nuw i64 4, %
// CHECK: call void @__nvl_tx_range(ptr {{.*}}, i32 noundef 2, ptr addrspace(1) {{.*}}, i64 noundef 1, i64 noundef %[[SIZE]])
#pragma nvl atomic heap(h) clobber(a[i++])
    a[0][0] = 1;
}

// CHECK-LABEL: @nested(
void nested(nvl_heap_t *h, nvl struct s *p, int c) {
    if (c)
// CHECK: call void @__nvl_tx_begin(ptr noundef %[[OUTER:[0-9]+]], i32
// CHECK: call void @__nvl_tx_begin(ptr noundef %[[INNER:[0-9]+]], i32
// CHECK: store i32 1
// CHECK: call void @__nvl_tx_end(ptr noundef %[[INNER]])
// CHECK: call void @__nvl_tx_end(ptr noundef %[[OUTER]])
#pragma nvl atomic heap(h)
#pragma nvl atomic heap(h) readonly(p->a[0:2])
        p->n = 1;
    else
// CHECK: call void @__nvl_tx_begin(
// CHECK: store i32 2
// CHECK: store i32 3
// CHECK: call void @__nvl_tx_end(
#pragma nvl atomic heap(h)
        if (c > 1)
            p->n = 2;
        else if (c > 2)
            p->n = 3;
    if (c)
        c++;
    else
        c--;
}

// CHECK-LABEL: @forms(
void forms(nvl_heap_t *h, nvl struct s *p, int c) {
// CHECK: @__nvl_tx_begin
// CHECK: @__nvl_tx_end
#pragma nvl atomic heap(h)
    do
        p->n++;
    while (p->n < 3);
// CHECK: @__nvl_tx_begin
// CHECK: @__nvl_tx_end
#pragma nvl atomic heap(h)
    switch (c) {
    case 1:
        p->n = 1;
        break;
    default:
        p->n = 2;
    }
// CHECK: @__nvl_tx_begin
// CHECK: @__nvl_tx_end
#pragma nvl atomic heap(h)
again:
    for (int i = 0; i < 3; i++)
        if (p->n++ > 3)
            goto again;
// CHECK: @__nvl_tx_begin
// CHECK: i32 noundef 2, ptr addrspace(1) {{.*}}, i64 noundef 3, i64 noundef 4)
// CHECK: @__nvl_tx_end
    ATOMIC(h) p->a[1] = 2;
// CHECK: @__nvl_tx_begin
// CHECK: @__nvl_tx_end
#pragma nvl atomic heap(h)
#pragma clang loop unroll(disable)
    for (int i = 0; i < 3; i++)
        p->a[i] = c ? i : 0;
// CHECK: @__nvl_tx_begin
// CHECK: @__nvl_tx_end
#pragma nvl atomic heap(h)
#pragma omp simd
    for (int i = 0; i < 3; i++)
        p->a[i] = i;
    switch (c) {
    case 1:
// CHECK: @__nvl_tx_begin
// CHECK: @__nvl_tx_end
#pragma nvl atomic heap(h), clobber(p->n)
        p->n = (c ? 1 : 2), p->next = ({ nvl struct s *q = p; q; });
    }
}
// A transaction is the last statement, and the end of the file follows.
void last(nvl_heap_t *h, nvl struct s *p) {
#pragma nvl atomic heap(h)
    p->n = 1; }
