// Accesses of weak members carry an annotation, at any depth; others do not.
// RUN: %ir -O0 | %filecheck
// RUN: %ir -O2 | %filecheck --check-prefix=OPT
#include <nvl.h>

struct w {
    nvl struct w *strong;
    nvl struct w *nvl_wp weak;
    struct {
        nvl struct w *nvl_wp deep[2];
    } inner[3];
};
// CHECK: c"nvl_wp\00"
// CHECK-LABEL: @load(
// CHECK: %[[P:.*]] = call ptr addrspace(1) @llvm.ptr.annotation.p1.p0(
// CHECK: load ptr addrspace(1), ptr addrspace(1) %[[P]]
// OPT-LABEL: @load(
// OPT: call ptr addrspace(1) @llvm.ptr.annotation.p1.p0(
nvl struct w *load(nvl struct w *p) { return p->weak; }
// CHECK-LABEL: @store(
// CHECK: %[[P:.*]] = call ptr addrspace(1) @llvm.ptr.annotation.p1.p0(
// CHECK: store ptr addrspace(1) %{{.*}}, ptr addrspace(1) %[[P]]
void store(nvl struct w *p, nvl struct w *q) { p->weak = q; }
// CHECK-LABEL: @deep(
// CHECK: %[[P:.*]] = call ptr addrspace(1) @llvm.ptr.annotation.p1.p0(
// CHECK: %[[E:.*]] = getelementptr inbounds [2 x ptr addrspace(1)], ptr addrspace(1) %[[P]]
// CHECK: load ptr addrspace(1), ptr addrspace(1) %[[E]]
nvl struct w *deep(nvl struct w *p, int i) { return p->inner[i].deep[1]; }
// CHECK-LABEL: @strong(
// CHECK-NOT: annotation
// CHECK: {{^}$}}
nvl struct w *strong(nvl struct w *p) { return p->strong; }
// A struct in NVM is copied as such: the passes find out what it holds.
// CHECK-LABEL: @copy(
// CHECK: call void @llvm.memcpy.p1.p1.i64(
void copy(nvl struct w *p, nvl struct w *q) { *p = *q; }
