// The header that is missing comes first.
// RUN: not %durumcc -fsyntax-only -fdiagnostics-parseable-fixits %s 2>&1 | %filecheck
// CHECK: fix-it:"{{.*}}fix-header.c":{1:1-1:1}:"#include <nvl.h>\n"
void f(int *p) {
#pragma nvl atomic heap(p)
    *p = 1;
}
