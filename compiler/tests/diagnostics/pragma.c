// Mistakes in and around `#pragma nvl` (paper, §3.9).
// RUN: %verify
#include <nvl.h>

struct s {
    int a[10];
    nvl struct s *next;
};
typedef int number;

void f(nvl_heap_t *h, nvl struct s *p, nvl int a[10], int v[10], int c) {
#pragma nvl // expected-error {{unknown '#pragma nvl'; there is '#pragma nvl atomic heap(h)' [nvl-pragma]}}
#pragma nvl automic heap(h) // expected-error {{[nvl-pragma]}}
#pragma nvl atomic // expected-error {{the transaction needs its heap: add heap(h), where h is what nvl_open gave [nvl-pragma-heap]}}
    c++;
#pragma nvl atomic backup(*p) // expected-error {{[nvl-pragma-heap]}}
    c++;
#pragma nvl atomic heap // expected-error {{expected '(' behind the name of the clause [nvl-pragma-syntax]}}
    c++;
#pragma nvl atomic heap() // expected-error {{expected an item of the clause}}
    c++;
#pragma nvl atomic heap(h // expected-error {{expected ')'}}
    c++;
#pragma nvl atomic heap(h) 7 // expected-error {{expected the name of a clause}}
    c++;
#pragma nvl atomic heap(h,) // expected-error {{expected an item of the clause}}
    c++;
#pragma nvl atomic heap(h) clobbr(p->a) // expected-error {{unknown clause 'clobbr'; the clauses are heap, backup, clobber, readonly and default [nvl-pragma-clause]}}
    c++;
#pragma nvl atomic heap(h) heap(h) // expected-error {{there is a clause 'heap' already [nvl-pragma-twice]}}
    c++;
#pragma nvl atomic heap(h) default(backup) default(clobber) // expected-error {{there is a clause 'default' already}}
    c++;
#pragma nvl atomic heap(h) default(none) // expected-error {{the default is backup, clobber or readonly [nvl-pragma-default]}}
    c++;
#pragma nvl atomic heap(h) backup(a[1:]) // expected-error {{a section of an array is written a[first:count] [nvl-pragma-section]}}
    c++;
#pragma nvl atomic heap(h) backup(a[:1]) // expected-error {{[nvl-pragma-section]}}
    c++;
#pragma nvl atomic heap(h) backup(p->a[1:2][3]) // expected-error {{[nvl-pragma-section]}}
    c++;
#pragma nvl atomic heap(h) backup(c, v[1:2]) // expected-error 2 {{changes address space of pointer}} expected-note@nvl.h:* 2 {{passing argument}}
    c++;
#pragma nvl atomic heap(a) // expected-error {{initializing 'nvl_heap_t *' (aka 'struct __nvl_heap *') with an expression of type}}
    c++;
#pragma nvl atomic heap(h) backup(unknown) // expected-error 2 {{use of undeclared identifier 'unknown'}} expected-error 0+ {{reference to overloaded function could not be resolved}}
    c++;
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
    goto inside; // expected-error {{cannot jump from this goto statement to its label}}
#pragma nvl atomic heap(h) // expected-note {{jump bypasses initialization of variable with __attribute__((cleanup))}}
    {
    inside:
        p->a[1] = 2;
    }
}

#pragma nvl atomic heap(h) // expected-error {{[nvl-pragma-declaration]}}
void g(nvl_heap_t *h);
