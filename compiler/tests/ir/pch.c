// Members, marks and descriptors survive a precompiled header.
// RUN: %front-end -x c-header %s -o %t.pch
// RUN: %front-end -S -emit-llvm -include-pch %t.pch -o - %s | %filecheck
// RUN: not %front-end -fsyntax-only -include-pch %t.pch -DWRONG %s 2>&1 | FileCheck --check-prefix=WRONG %s
#ifndef HEADER
#define HEADER
#include <nvl.h>
struct w {
    nvl struct w *nvl_wp weak;
    nvl int n;
};
static inline nvl struct w *root(nvl_heap_t *h) { return nvl_get_root(h, struct w); }
#else
// CHECK: c"nvl1 16 8 {{[0-9a-f]+}}\0Astruct \22w\22(16,8){0:\22weak\22:~0;8:\22n\22:i32;}\0A\00"
// CHECK-LABEL: @f(
// CHECK: @llvm.ptr.annotation.p1.p0(
// CHECK: @__nvl_tx_begin(
nvl struct w *f(nvl_heap_t *h, nvl int a[3]) {
#pragma nvl atomic heap(h) backup(a[0:3])
    a[1] = 2;
    return root(h)->weak;
}
#ifdef WRONG
// WRONG: objects of type 'struct w' exist in NVM only [nvl-only-in-nvm]
// WRONG: 'x' cannot be stored in NVM
// WRONG: parameter 'y' cannot be stored
struct w local;
nvl int x;
void g(nvl int y);
#endif
#endif
// RUN: not %front-end -c -include-pch %t.pch -o %t.o %s 2>&1 | FileCheck --check-prefix=REFUSED %s
// REFUSED: [nvl-no-passes]
