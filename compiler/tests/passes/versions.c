// What is known of callers is used. Functions that nobody knows the callers of ask once, and become two where the
// answer would be in the way of a loop.
// RUN: %lowered -O1 -fno-inline | %filecheck
// RUN: %lowered -O0 | FileCheck --check-prefix=SIMPLE %s
#include <nvl.h>

// Not without optimization.
// SIMPLE-NOT: .nvl0

static void inside_too(nvl int *p) { *p = 1; }
static void inside_only(nvl int *p) {
    *p = 2;
    inside_too(p);
}
static void both(nvl int *p) { *p = 3; }

// A loop that is announced as a whole has the question beside it.
// CHECK-LABEL: define {{.*}}@dense(
// CHECK: call {{.*}}@__nvl_tx_depth
// CHECK-DAG: call void @__nvl_log_at(ptr addrspace(1) %{{.*}}, i64 %
// CHECK-DAG: call void @__nvl_persist_at(ptr addrspace(1) %{{.*}}, i64 %
// CHECK-NOT: @dense.nvl
void dense(nvl int *p, int n) {
    for (int i = 0; i < n; i++)
        p[i] = i;
}
// Nobody knows who calls it.
// CHECK-LABEL: define {{.*}}@seen(
// CHECK: call {{.*}}@__nvl_tx_depth
// CHECK: musttail call void @seen.nvltx(
// CHECK: musttail call void @seen.nvl0(
// CHECK-LABEL: define internal {{.*}}@seen.nvl0(
// CHECK-NOT: __nvl_log
// CHECK: call {{.*}}void @row.nvl0(
// CHECK-LABEL: define internal {{.*}}@seen.nvltx(
// CHECK-NOT: __nvl_persist
// CHECK: call {{.*}}void @row.nvltx(
static void row(nvl int *p, int n);
void seen(nvl int *p, int n) {
    for (int i = 0; i < n; i++)
        p[p[i] & 7] = i;
    row(p, n);
}
// Called by both versions, so it has two, and nobody needs what asks.
// CHECK-NOT: define {{.*}}@row(
// CHECK: define internal {{.*}}@row.nvl0(
// CHECK: call void @__nvl_persist
// CHECK: define internal {{.*}}@row.nvltx(
// CHECK: call void @__nvl_log
static void row(nvl int *p, int n) {
    for (int i = 0; i < n; i++)
        p[p[i] & 7] += i;
}
// Another definition may win, which has no versions.
// CHECK-LABEL: define weak {{.*}}@weak(
__attribute__((weak)) void weak(nvl int *p, int n) {
    for (int i = 0; i < n; i++)
        p[p[i] & 7] = 4;
}
// Any number of arguments.
// CHECK-LABEL: define {{.*}}@variable(
// CHECK: musttail call {{.*}}@variable.nvltx({{.*}}, ...)
void variable(nvl int *p, int n, ...) {
    for (int i = 0; i < n; i++)
        p[p[i] & 7] = 5;
}
// Objects by value are copied once more, for a call that is not musttail; with any number of arguments behind them it
// asks.
// CHECK-LABEL: define {{.*}}@large(
// CHECK-NOT: musttail
// CHECK: call {{.*}}@large.nvltx({{.*}}byval(
struct large { long a[9]; };
void large(nvl int *p, struct large l) {
    for (int i = 0; i < l.a[0]; i++)
        p[p[i] & 7] = 6;
}
// CHECK-LABEL: define {{.*}}@variable_large(
// CHECK: call {{.*}}@__nvl_tx_depth
// CHECK-NOT: @variable_large.nvl
void variable_large(nvl int *p, struct large l, ...) {
    for (int i = 0; i < l.a[0]; i++)
        p[p[i] & 7] = 7;
}
// Assembly may define a symbol.
// CHECK-LABEL: define {{.*}}@assembly(
// CHECK: call {{.*}}@__nvl_tx_depth
// CHECK-NOT: @assembly.nvl
void assembly(nvl int *p, int n) {
    __asm__ volatile("durum_label:");
    for (int i = 0; i < n; i++)
        p[p[i] & 7] = 8;
}
// A table of labels belongs to one function, which asks.
// CHECK-LABEL: define {{.*}}@labels(
// CHECK-DAG: call {{.*}}@__nvl_tx_depth
// CHECK-DAG: indirectbr
// CHECK-DAG: call void @__nvl_log
// CHECK-DAG: call void @__nvl_persist
void labels(nvl int *p, int i) {
    static void *table[] = {&&one, &&two};
    goto *table[i];
one:
    *p = 6;
    goto *table[p[1]];
two:
    return;
}
// CHECK-LABEL: define {{.*}}@call(
// CHECK: call void @__nvl_tx_begin
// CHECK: call {{.*}}void @inside_only(
// CHECK: call {{.*}}void @both(
// CHECK: call {{.*}}void @seen.nvltx(
// CHECK: call {{.*}}void @weak(
// CHECK: call void @__nvl_tx_end
// CHECK: call {{.*}}void @seen(
void call(nvl_heap_t *h, nvl int *p) {
#pragma nvl atomic heap(h)
    {
        inside_only(p);
        both(p);
        seen(p, 7);
        weak(p, 7);
    }
    seen(p, 8);
}
// Only called inside.
// CHECK-LABEL: define internal {{.*}}@inside_only(
// CHECK-NOT: __nvl_tx_depth
// CHECK: call void @__nvl_log
// CHECK: call {{.*}}void @inside_too(
// Called in both ways: it asks.
// CHECK-LABEL: define internal {{.*}}@both(
// CHECK: call ptr @__nvl_tx_depth
// CHECK-LABEL: define {{.*}}@main(
// CHECK-NOT: __nvl_tx_depth
// CHECK: call void @__nvl_persist
// CHECK: call {{.*}}void @both(
// CHECK: call {{.*}}void @seen.nvl0(
int main(int argc, char **argv) {
    (void)argv;
    nvl int *p = nvl_alloc_nv(nvl_open("heap"), 1, int);
    *p = argc;
    both(p);
    seen(p, 1);
    return 0;
}
// Called by it only.
// CHECK-LABEL: define internal {{.*}}@inside_too(
// CHECK-NOT: __nvl_tx_depth
// CHECK-NOT: __nvl_persist
// CHECK: call void @__nvl_log
