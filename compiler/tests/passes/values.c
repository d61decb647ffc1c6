// An argument by value is copied before the call; no cast out of NVM is left, so that NVM aliases nothing else.
// RUN: %lowered -O0 | %filecheck
// RUN: %lowered -O2 | %filecheck --check-prefix=OPT
// What Clang itself makes of the one that is refused is broken: the passes are to see it before LLVM's verifier does.
// RUN: not env -u CCC_OVERRIDE_OPTIONS %durumcc -c -DREFUSED %s -o %t.o 2>&1 | FileCheck --check-prefix=REFUSED %s
// RUN: not %durumcc -fopenmp -c -DREDUCTION %s -o %t.o 2>&1 | FileCheck --check-prefix=REDUCTION %s
// RUN: not %durumcc -fopenmp -O2 -flto -c -DREDUCTION %s -o %t.o 2>&1 | FileCheck --check-prefix=REDUCTION %s
#include <nvl.h>

struct large {
    nvl int *p;
    int rest[14];
};
void taken(struct large value);

// CHECK-LABEL: @argument(
// CHECK: %[[COPY:.*]] = alloca %struct.large, align 8
// CHECK: call void @llvm.memcpy.p0.p1.i64(ptr align 8 %[[COPY]], ptr addrspace(1)
// CHECK: call void @taken(ptr noundef byval(%struct.large) align 8 %[[COPY]])
// CHECK-NOT: addrspacecast
void argument(nvl struct large *n) { taken(*n); }

// OPT-LABEL: define {{.*}}@triad(
// OPT: load double, ptr %{{.*}}, !alias.scope ![[VOLATILE:[0-9]+]], !noalias ![[NVM:[0-9]+]]
// OPT: store double %{{.*}}, ptr addrspace(1) %{{.*}}, !alias.scope ![[NVM]], !noalias ![[VOLATILE]]
void triad(nvl double *a, double *b) { *a = *b * 2; }

// With calls, restrict would let a store leave its transaction.
// OPT-LABEL: @restricted(
// OPT: call void @__nvl_tx_begin_at(
// OPT: store i32 1
// OPT: call void @__nvl_tx_end_at(
// OPT: store i32 2
void restricted(nvl_heap_t *h, nvl int *restrict p) {
#pragma nvl atomic heap(h)
    *p = 1;
    *p = 2;
}
#ifdef REFUSED
struct atomic { long a[4]; };
// REFUSED: error: {{.*}}changed by a library function
void refused(nvl _Atomic struct atomic *p, struct atomic v) { *p = v; }
#endif
#ifdef REDUCTION
// REDUCTION: error: {{.*}}a copy in volatile memory takes the place of an object in NVM here{{.*}}[nvl-openmp]
void reduced(nvl long *a, int n) {
#pragma omp parallel for reduction(+ : a[0 : 4])
    for (int i = 0; i < n; i++)
        a[i % 4] += i;
}
#endif
