// Conversions and comparisons (paper, §3.4 and §3.8).
// RUN: %verify
#include <nvl.h>

struct list {
    int value;
    nvl struct list *next;
};
struct pair {
    int a, b;
};
struct opaque;

// Clang's own: implicit ones.
int *implicit(nvl int *p, int *v) {
    p = v;    // expected-error {{assigning 'int *' to 'nvl int *' changes address space of pointer}}
    return p; // expected-error {{changes address space of pointer}}
}

void qualifiers(nvl int *p, int *v, nvl int **pp, void (*f)(nvl int *)) {
    (void)(int *)p;               // expected-error {{conversion from 'nvl int *' to 'int *' would add or remove 'nvl' [nvl-cast-qualifier]}}
    (void)(nvl int *)v;           // expected-error {{[nvl-cast-qualifier]}}
    (void)(int **)pp;             // expected-error {{[nvl-cast-qualifier]}}
    (void)(int **)&p;             // expected-error {{[nvl-cast-qualifier]}}
    (void)(void (*)(int *))f;     // expected-error {{[nvl-cast-qualifier]}}
    (void)(const nvl int *)p;
    (void)(nvl int *)NULL;
    (void)(nvl int *)0;
    (void)(void *)pp;
    (void)(nvl int **)(void *)pp;
    (void)(long *)pp;             // expected-error {{[nvl-cast-type]}}
}

void types(nvl struct list *l, nvl struct pair *q, nvl int *p, nvl void *any, nvl struct opaque *o,
           nvl float (*rows)[4], nvl float (*open)[]) {
    (void)(nvl struct pair *)l;   // expected-error {{would make one type of another where there are pointers into NVM [nvl-cast-type]}}
    (void)(nvl struct list *)p;   // expected-error {{[nvl-cast-type]}}
    (void)(nvl char *)l;          // expected-error {{[nvl-cast-type]}}
    (void)(nvl struct list *)o;   // expected-error {{[nvl-cast-type]}}
    (void)(nvl char *)q;
    (void)(nvl struct pair *)p;
    (void)(nvl float *)rows;
    (void)(nvl float (*)[])rows;
    open = rows;
    any = l;
    (void)(nvl void *)l;
    (void)(nvl const struct list *)l;
    l = any;                      // expected-error {{conversion from 'nvl void *' to 'nvl struct list *': nothing says that its target is one [nvl-cast-void]}}
    (void)(nvl int *)any;         // expected-error {{[nvl-cast-void]}}
    (void)open;
}

void numbers(nvl int *p, unsigned long n) {
    (void)(nvl int *)n;           // expected-error {{conversion from the integer type 'unsigned long' to 'nvl int *': addresses in NVM are not made of numbers [nvl-cast-integer]}}
    (void)(nvl int *)0x1000;      // expected-error {{[nvl-cast-integer]}}
    (void)(unsigned long)p;
    if (p)
        n++;
}

int comparisons(nvl int *p, nvl int *q, int *v, void *any, nvl int a[4]) {
    return p == v                 // expected-error {{comparison of 'nvl int *' and 'int *': one leads into NVM, the other one does not [nvl-compare]}}
           || p < v               // expected-error {{[nvl-compare]}}
           || any != p            // expected-error {{[nvl-compare]}}
           || a == v              // expected-error {{[nvl-compare]}}
           || p == q || p < q + 1 || p == NULL || 0 != p || !p || a == p;
}
