// A file that ends where a statement should be.
// RUN: %verify
#include <nvl.h>
void g(nvl_heap_t *h, nvl int *p) { // expected-note {{to match this '{'}}
    *p = 1;
#pragma nvl atomic heap(h) // expected-error {{[nvl-pragma-statement]}}
#if 0
    *p = 2;
#endif
// expected-error {{expected '}'}}
