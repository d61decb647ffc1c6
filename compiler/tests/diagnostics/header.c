// The pragma needs the header, and the header C on a machine of 64 bits.
// RUN: %verify
// RUN: not %durumcc -fsyntax-only -x c++ -DHEADER %s 2>&1 | FileCheck --check-prefix=CPP %s
// RUN: not %durumcc -fsyntax-only -m32 -DHEADER %s 2>&1 | FileCheck --check-prefix=SMALL %s
// SMALL: NVL-C needs a 64-bit machine
// CPP: NVL-C extends C, not C++
#ifdef HEADER
#include <nvl.h>
#endif

void f(int *p) {
#pragma nvl atomic heap(p) // expected-error {{'#pragma nvl' without its header [nvl-pragma-header]}}
    *p = 1;
}
