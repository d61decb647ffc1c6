// Functions of the library get the library's own pointers, so that the optimizer may make others of them.
// RUN: %lowered -O0 | %filecheck --check-prefixes=CHECK,T0
// RUN: %lowered -O2 | %filecheck --check-prefixes=CHECK,T2
// RUN: %lowered -Os | %filecheck --check-prefixes=CHECK,T2
// RUN: %lowered -O3 -flto | %filecheck --check-prefixes=CHECK,T2
// RUN: %lowered -O1 -fsanitize=thread | %filecheck --check-prefix=TSAN
// RUN: %lowered -O2 -flto -fsanitize=thread | %filecheck --check-prefix=TSAN
// RUN: %durumcc -O2 -flto -fsanitize=memory -c %s -o %t.o
// RUN: %durumcc -O2 -flto -fsanitize=hwaddress -c %s -o %t.o
#include <nvl.h>
#include <string.h>

struct pair {
    nvl long *one;
    char rest[56];
};

// CHECK-LABEL: define {{.*}}@equal(
// T0: %[[P:.*]] = addrspacecast ptr addrspace(1) %{{.*}} to ptr
// T0: %[[Q:.*]] = addrspacecast ptr addrspace(1) %{{.*}} to ptr
// T0: call i32 @memcmp(ptr noundef %[[P]], ptr noundef %[[Q]], i64 noundef 32)
// T2: %[[P:.*]] = addrspacecast ptr addrspace(1) %{{.*}} to ptr
// T2: %[[Q:.*]] = addrspacecast ptr addrspace(1) %{{.*}} to ptr
// T2: call i32 @bcmp(ptr {{.*}}%[[P]], ptr {{.*}}%[[Q]], i64 32)
_Bool equal(nvl char *p, nvl char *q) { return memcmp(p, q, 32) == 0; }

// Ordinary calls in the same file are not worse than elsewhere.
// CHECK-LABEL: define {{.*}}@ordinary(
// T2: call i32 @bcmp(
_Bool ordinary(char *p, char *q) { return memcmp(p, q, 32) == 0; }

// What the optimizer reads in the place of the function is not told to be volatile memory.
// CHECK-LABEL: define {{.*}}@small(
// T2-NOT: @memcmp
// T2: load i8, ptr %{{[^!]*}}{{$}}
// T2: load i8, ptr %{{.*}} !alias.scope
// T2: ret
_Bool small(nvl char *p, char *q) { return memcmp(p, q, 1) == 0; }

// A fortified copy is a copy: with its log or write-back, and counted where there are pointers.
// CHECK-LABEL: define {{.*}}@fortified(
// CHECK-NOT: @__memcpy_chk
// CHECK: call void @__nvl_copy
// CHECK-NOT: @__memset_chk
// CHECK: icmp u{{.*}} 16
// CHECK: call void @__chk_fail()
// CHECK: ret void
void fortified(nvl struct pair *p, struct pair *q, size_t n) {
    __builtin___memcpy_chk(p, q, n, -1);
    __builtin___memset_chk(p, 0, n, 16);
}
// Out of NVM it stays what it is.
// CHECK-LABEL: define {{.*}}@out(
// CHECK: %[[P:.*]] = addrspacecast ptr addrspace(1) %{{.*}} to ptr
// CHECK: call ptr @__memcpy_chk(ptr {{.*}}, ptr {{.*}}%[[P]], i64 {{.*}}, i64 {{.*}}16)
void out(char *q, nvl char *p, size_t n) { __builtin___memcpy_chk(q, p, n, 16); }

// The program's own function of that name is no function of the library.
// CHECK-LABEL: define {{.*}}@own(
// CHECK: call ptr addrspace(1) @memrchr(
// CHECK: declare ptr addrspace(1) @memrchr(ptr addrspace(1) {{[^)]*}}){{.*}} #[[OWN:[0-9]+]]
// CHECK: attributes #[[OWN]] = { {{.*}}nobuiltin
nvl char *memrchr(nvl const char *text, int letter, size_t length);
nvl char *own(nvl char *p) { return memrchr(p, 'x', 1); }

// Nor do sanitizers get what their library has no function for.
// TSAN-LABEL: define {{.*}}@sanitized(
// TSAN: call ptr @__tsan_memcpy(ptr %{{.*}}, ptr %{{.*}}, i64 64)
// TSAN: call i32 @__tsan_atomic32_fetch_add(ptr %{{.*}}, i32 1, i32 5)
// TSAN: ret
void sanitized(nvl struct pair *p, struct pair *q, nvl int *n) {
    *q = *p;
    __atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST);
}
