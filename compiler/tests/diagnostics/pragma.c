// Mistakes around `#pragma nvl` (paper, §3.9). clauses.c has those in its clauses.
// RUN: %verify
// RUN: not %durumcc -fsyntax-only -ferror-limit=0 %s 2>&1 | %filecheck --implicit-check-not='scratch space'
#include <nvl.h>

struct s {
    int a[10];
    nvl struct s *next;
};
typedef int number;

void f(nvl_heap_t *h, nvl struct s *p, nvl int a[10], int v[10], int c) {
#pragma nvl // expected-error {{unknown '#pragma nvl'; there is '#pragma nvl atomic heap(h)' [nvl-pragma]}}
#pragma nvl automic heap(h) // expected-error {{[nvl-pragma]}}
#pragma nvl atomic heap(h) // expected-error {{'#pragma nvl atomic' stands before a declaration, whose name would end with the transaction [nvl-pragma-declaration]}}
    int d = 1;
#pragma nvl atomic heap(h) // expected-error {{[nvl-pragma-declaration]}}
    nvl struct s *q = p;
#pragma nvl atomic heap(h)
    number e = 1; // expected-error {{[nvl-pragma-declaration]}}
    p->a[0] = d + q->a[1];
    {
        c++;
#pragma nvl atomic heap(h) // expected-error {{there is no statement after '#pragma nvl atomic' [nvl-pragma-statement]}}
    }
    switch (c) {
#pragma nvl atomic heap(h) // expected-error {{'#pragma nvl atomic' stands before a label of a switch, which would jump into the transaction [nvl-pragma-case]}}
    case 1:
        c++;
#pragma nvl atomic heap(h) // expected-error {{[nvl-pragma-case]}}
    default:
        c++;
    }
#pragma nvl atomic heap(h)
    switch (c)
    case 2:
        p->a[2] = 1;
    goto inside; // expected-error {{cannot jump from this goto statement to its label}}
// CHECK: pragma.c:[[#@LINE+1]]:1: note: jump bypasses initialization
#pragma nvl atomic heap(h) // expected-note {{jump bypasses initialization of variable with __attribute__((cleanup))}}
    {
    inside:
        p->a[1] = 2;
    }
}

#pragma nvl atomic heap(h) // expected-error {{[nvl-pragma-declaration]}}
void g(nvl_heap_t *h);
