// Stores of pointers, weak ones, and copies become calls of the runtime, whatever the optimizer does; plain data stays
// plain.
// RUN: %lowered -O0 | %filecheck
// RUN: %lowered -O2 | %filecheck
#include <nvl.h>
#include <string.h>

struct s {
    nvl struct s *next;
    nvl struct s *nvl_wp back;
    nvl struct s *nvl_wp row[4];
    long n;
};
struct one {
    nvl long *p;
};
struct volatile_one {
    nvl long *p;
    int n;
};
struct tiny {
    short a, b;
};

// CHECK-LABEL: @store(
// CHECK: call void @__nvl_store_ptr_at(ptr addrspace(1) {{.*}}, ptr addrspace(1) {{.*}}, ptr {{.*}}@__nvl_file, i32 [[@LINE+1]])
void store(nvl struct s *p, nvl struct s *q) { p->next = q; }
// CHECK-LABEL: @store_weak(
// CHECK: call void @__nvl_store_weak_at(
// CHECK: call void @__nvl_store_weak_at(
// CHECK-NOT: annotation
// CHECK: ret
void store_weak(nvl struct s *p, nvl struct s *q, int i) { p->back = q; p->row[i] = q; }
// CHECK-LABEL: @load_weak(
// CHECK: call ptr addrspace(1) @__nvl_load_weak_at(
// CHECK-NOT: annotation
// CHECK: ret
nvl struct s *load_weak(nvl struct s *p, int i) { return p->row[i]; }
// A copy of 8 bytes would be an integer's.
// CHECK-LABEL: @copy(
// CHECK: call void @__nvl_copy_at(ptr addrspace(1) {{.*}}, ptr {{.*}}, i64 8,
// CHECK-NOT: store i64
// CHECK: ret
void copy(nvl struct one *p, nvl struct one *q) { *p = *q; }
// CHECK-LABEL: @into(
// CHECK: call void @__nvl_copy_at(
void into(nvl struct volatile_one *p, struct volatile_one v) { *p = v; }
// Out of NVM it is a copy like others.
// CHECK-LABEL: @out(
// CHECK-NOT: __nvl_copy
// CHECK: ret
struct volatile_one out(nvl struct volatile_one *p) { return *p; }
// CHECK-LABEL: @fill(
// CHECK: call void @__nvl_fill_at(ptr addrspace(1) {{.*}}, i32 0, i64 %
void fill(nvl struct one *p, size_t n) { memset(p, 0, n); }
// Too small for a pointer.
// CHECK-LABEL: @tiny
// CHECK-NOT: __nvl_copy
// CHECK: ret
void tiny(nvl struct tiny *p, nvl struct tiny *q) { *p = *q; }
// Pointers in volatile memory are like others.
// CHECK-LABEL: @in_volatile(
// CHECK: store ptr addrspace(1)
// CHECK-NOT: call
// CHECK: ret
void in_volatile(nvl long **p, nvl long *q) { *p = q; }
// The mark is gone.
// CHECK-NOT: needs_passes
// CHECK-NOT: not_compiled
