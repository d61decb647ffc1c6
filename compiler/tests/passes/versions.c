// Callers that know where they are call the version that they need; a static function that is called in one way stays in one version.
// RUN: %lowered -O0 | %filecheck
#include <nvl.h>

// RUN: %lowered -O0 | FileCheck --check-prefix=UNUSED %s
// UNUSED-NOT: define {{.*}}@both(
// UNUSED-NOT: define {{.*}}@inside_only(
// UNUSED-NOT: define {{.*}}@inside_only.nvl0(
static void both(nvl int *p) { *p = 1; }
static void inside_only(nvl int *p) {
    *p = 2;
    both(p);
}
// CHECK-LABEL: define {{.*}}@seen(
// CHECK: musttail call void @seen.nvltx(
// CHECK-LABEL: define internal {{.*}}@seen.nvl0(
// CHECK: call void @both.nvl0(
// CHECK-LABEL: define internal {{.*}}@seen.nvltx(
// CHECK: call void @both.nvltx(
void seen(nvl int *p) {
    *p = 3;
    both(p);
}
// CHECK: define internal {{.*}}@both.nvl0(
// CHECK: define internal {{.*}}@both.nvltx(
// Another definition may win, which has no versions.
// CHECK-LABEL: define weak {{.*}}@weak(
__attribute__((weak)) void weak(nvl int *p) { *p = 4; }
// Any number of arguments, and objects by value.
struct large { long a[9]; };
// CHECK-LABEL: define {{.*}}@variable(
// CHECK: musttail call {{.*}}@variable.nvltx({{.*}}, ...)
struct large variable(nvl int *p, struct large l, ...) { *p = 5; return l; }
// A table of labels belongs to one function, which asks at each store.
// CHECK-LABEL: define {{.*}}@labels(
// CHECK: call void @__nvl_log_at(
// CHECK: store i32 6
// CHECK: icmp eq i32 %{{.*}}, 0
// CHECK: call void @__nvl_persist_at(
void labels(nvl int *p, int i) {
    static void *table[] = {&&one, &&two};
    goto *table[i];
one:
    *p = 6;
two:
    return;
}
// CHECK-LABEL: define {{.*}}@call(
// CHECK: call void @__nvl_tx_begin_at(
// CHECK: call void @inside_only.nvltx(
// CHECK: call void @both.nvltx(
// CHECK: call void @seen.nvltx(
// CHECK: call void @weak(
// CHECK: call void @__nvl_tx_end_at(
// CHECK: call void @seen(
void call(nvl_heap_t *h, nvl int *p) {
#pragma nvl atomic heap(h)
    {
        inside_only(p);
        both(p);
        seen(p);
        weak(p);
    }
    seen(p);
}
// CHECK: define internal {{.*}}@inside_only.nvltx(
// CHECK: call void @both.nvltx(
// CHECK-LABEL: define {{.*}}@main(
// CHECK-NOT: __nvl_tx_depth
// CHECK: call void @__nvl_persist_at(
// CHECK: call void @both.nvl0(
int main(int argc, char **argv) {
    (void)argv;
    nvl int *p = nvl_alloc_nv(nvl_open("heap"), 1, int);
    *p = argc;
    both(p);
    return 0;
}
