// Local pointers into NVM start as null.
// RUN: %ir -O0 -Wno-uninitialized -fno-discard-value-names | %filecheck
#include <nvl.h>

struct v {
    int n;
    nvl int *p;
};
// CHECK-LABEL: @scalar(
// CHECK: %p = alloca ptr addrspace(1)
// CHECK: store ptr addrspace(1) null, ptr %p
nvl int *scalar(void) {
    nvl int *p;
    return p;
}
// CHECK-LABEL: @in_struct(
// CHECK: call void @llvm.memset.p0.i64(ptr align 8 %v, i8 0, i64 16, i1 false)
nvl int *in_struct(void) {
    struct v v;
    return v.p;
}
// CHECK-LABEL: @in_array(
// CHECK: call void @llvm.memset.p0.i64(ptr align 16 %a, i8 0, i64 32, i1 false)
nvl int *in_array(void) {
    nvl int *a[4];
    return a[1];
}
// CHECK-LABEL: @of_variable_length(
// CHECK: call void @llvm.memset.p0.i64(ptr align 16 %vla, i8 0, i64 %{{.*}}, i1 false)
nvl int *of_variable_length(int n) {
    nvl int *a[n];
    return a[1];
}
// CHECK-LABEL: @initialized(
// CHECK-NOT: null
// CHECK: {{^}$}}
nvl int *initialized(nvl int *q) {
    nvl int *p = q;
    return p;
}
// Objects of plain data are left alone.
// CHECK-LABEL: @plain(
// CHECK-NOT: store
// CHECK: {{^}$}}
int plain(void) {
    int a;
    int *p;
    (void)p;
    return a;
}
