// Structs that go into NVM, out of it, and from one place there to another, are copied by one intrinsic each.
// RUN: %ir -O0 | %filecheck
#include <nvl.h>

struct large {
    nvl int *p;
    int rest[14];
};
struct large made(void);
void taken(struct large value);

// CHECK-LABEL: @into(
// CHECK: call void @made(ptr {{.*}}sret
// CHECK: call void @llvm.memcpy.p1.p0.i64(ptr addrspace(1) {{.*}}, i64 64,
// CHECK-NOT: addrspacecast
void into(nvl struct large *n) { *n = made(); }
// CHECK-LABEL: @literal(
// CHECK-NOT: addrspacecast
// CHECK: call void @llvm.memcpy.p1.p0.i64(ptr addrspace(1) {{.*}}, i64 64,
void literal(nvl struct large *n) { *n = (struct large){n->p, {1}}; }
// CHECK-LABEL: @within(
// CHECK: call void @llvm.memcpy.p1.p1.i64(
void within(nvl struct large *n) { n[0] = n[1]; }
// CHECK-LABEL: @out(
// CHECK: call void @llvm.memcpy.p0.p1.i64(
struct large out(nvl struct large *n) { return *n; }
// The one place where a pointer leaves its space: an argument that is copied by the call.
// CHECK-LABEL: @argument(
// CHECK: %[[P:.*]] = addrspacecast ptr addrspace(1) %{{.*}} to ptr
// CHECK-NEXT: call void @taken(ptr noundef byval(%struct.large) align 8 %[[P]])
void argument(nvl struct large *n) { taken(*n); }
