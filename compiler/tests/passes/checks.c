// Order and distance of pointers are checked, unless both have one origin; in loops once.
// RUN: %lowered -O1 | %filecheck
// RUN: %lowered -O1 -fnvl-no-checks | FileCheck --check-prefix=WITHOUT %s
// WITHOUT-NOT: __nvl_check_same
#include <nvl.h>

// CHECK-LABEL: @less(
// CHECK: call void @__nvl_check_same_at(ptr addrspace(1) %{{.*}}, ptr addrspace(1) %{{.*}}, ptr {{.*}}, i32 [[@LINE+1]])
int less(nvl int *p, nvl int *q) { return p < q; }
// CHECK-LABEL: @distance(
// CHECK: call void @__nvl_check_same_at(
long distance(nvl int *p, nvl int *q) { return p - q; }
// CHECK-LABEL: @equal(
// CHECK-NOT: __nvl_check_same
// CHECK: ret
int equal(nvl int *p, nvl int *q) { return p == q || p != q + 1; }
// CHECK-LABEL: @one_origin(
// CHECK-NOT: __nvl_check_same
// CHECK: ret
int one_origin(nvl int *p, int n) {
    int sum = 0;
    for (nvl int *q = p, *end = p + n; q < end; q++)
        sum += *q;
    return sum;
}
// CHECK-LABEL: @once(
// CHECK: call void @__nvl_check_same_at(
// CHECK-NOT: __nvl_check_same
// CHECK: ret
int once(nvl int *p, nvl int *end) {
    int sum = 0;
    for (nvl int *q = p; q < end; q++)
        sum += *q;
    return sum;
}
// CHECK-LABEL: @only_if(
// CHECK: br i1
// CHECK: call void @__nvl_check_same_at(
int only_if(nvl int *p, nvl int *q, int n) { return n && p < q; }
