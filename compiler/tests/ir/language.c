// What is allowed: the forms in which C programs use pointers, in each edition of the language, without a warning.
// RUN: %ir -O0 -std=c99 -o /dev/null
// RUN: %ir -O2 -std=c11 -pedantic -Wno-gnu -o /dev/null
// RUN: %ir -O1 -std=gnu17 -g -o /dev/null
// RUN: %ir -O2 -std=c23 -fsanitize=address,undefined -o /dev/null
#include <nvl.h>
#include <string.h>
#include <stdlib.h>
struct t { int n; nvl struct t *next; };
typedef nvl struct t *tp;
struct vol { tp p; int k; };
static nvl struct t *cache[4];
struct big { char name[32]; nvl struct t *rows[3]; double m[2][2]; };
nvl int *arr(nvl_heap_t *h, int n) { return nvl_alloc_nv(h, n, int); }
tp chain(tp a) { return a ? chain(a->next) : NULL; }
void swap(nvl struct t *a, nvl struct t *b) { struct t tmp = *a; *a = *b; *b = tmp; }
int cond(nvl struct t *a, nvl struct t *b, int c) { return (c ? a : b)->n; }
int cond0(nvl struct t *a, int c) { return (c ? a : NULL) != NULL; }
struct vol ret(tp p) { return (struct vol){p, 1}; }
void init(void) { struct vol v = {0}; struct vol w = {.p = cache[1]}; (void)v; (void)w; }
void big(nvl_heap_t *h) { nvl struct big *b = nvl_alloc_nv(h, 1, struct big); b->rows[0] = cache[0]; strcpy((char[32]){0}, "x"); b->m[1][0] += 2; nvl struct big *c = b; *c = *b; }
typedef int (*fn)(nvl int *, int);
int call(fn f, nvl int *p) { return f(p, 1) + (*f)(p, 2); }
struct ops { fn f; };
int callo(struct ops *o, nvl int *p) { return o->f(p, 3); }
void vols(void) { nvl struct t **v = malloc(8 * sizeof *v); v[0] = cache[0]; v = realloc(v, 16 * sizeof *v); free(v); }
nvl int *off(nvl int *p, ptrdiff_t d) { return p + d; }
ptrdiff_t diff(nvl int *p, nvl int *q) { return p - q; }
int cast(nvl const int *p) { return *(nvl int *)p; }
void q(nvl volatile int *p, nvl int *restrict r) { *p = *r; }
_Bool b(nvl int *p) { return p; }
void strs(nvl char *d, const char *s) { while ((*d++ = *s++)); }
int bf(nvl struct { int a:3; unsigned b:5; } *p) { p->a = 1; return p->b++; }
void inc(nvl struct t *p) { p->n++; ++p->n; p->n += 3; p->n <<= 1; }
int sz(nvl struct t *p) { return sizeof(*p) + sizeof(p->next) + _Alignof(struct t); }
int gen(nvl int *p) { return _Generic(p, nvl int *: 1, int *: 2); }
nvl int *stmt(nvl int *p) { return ({ nvl int *x = p; x + 1; }); }
int vla(int n, nvl double m[n][n]) { double s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) s += m[i][j]; return s; }
nvl double (*mat(nvl_heap_t *h, int n))[4] { return nvl_alloc_nv(h, n, double[4]); }
struct weak {
    nvl struct weak *nvl_wp up;
    int n;
};
void weak(nvl struct weak *p, int c) {
    if (p->up == p->up->up)
        p->up++;
    p->up->n = 1;
    (p->up)->up = c ? p->up : p;
    nvl struct weak *array[] = {p->up, p};
    for (nvl struct weak *i = array[1]; i; i = i->up)
        i->n = 2;
}
void atomics(nvl int *n, nvl _Atomic int *m) {
    _Atomic(nvl int *) local;
    (void)local;
    (*m)++;
    __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}
