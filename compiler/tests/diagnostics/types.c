// Types that nvl_alloc_nv, nvl_get_root and nvl_set_root cannot describe.
// RUN: %verify
#include <nvl.h>

struct opaque;
struct empty {};
struct leads {
    nvl struct opaque *somewhere;
};
struct handle {
    nvl_heap_t *heap; // expected-note {{member 'heap' of 'struct handle'}}
};

void types(nvl_heap_t *heap, int n, nvl int *p, nvl struct leads *l) {
    (void)nvl_alloc_nv(heap, 1, struct opaque);  // expected-error {{invalid application of 'sizeof' to an incomplete type}} expected-note@5 {{forward declaration}}
    (void)nvl_get_root(heap, struct opaque);     // expected-error {{NVM cannot be allocated for 'struct opaque': it needs an object type of a size that is known and not 0 [nvl-type-argument]}}
    (void)nvl_get_root(heap, void);              // expected-error {{[nvl-type-argument]}}
    (void)nvl_get_root(heap, struct empty);      // expected-error {{[nvl-type-argument]}}
    (void)nvl_alloc_nv(heap, 1, int[n]);         // expected-error {{[nvl-type-argument]}}
    (void)nvl_get_root(heap, struct leads);      // expected-error {{the type of 'struct leads' leads to 'struct opaque', which is incomplete here, and the check of the root's type covers it [nvl-incomplete]}}
    (void)nvl_alloc_nv(heap, 1, int *);          // expected-error {{a pointer in NVM to volatile memory: 'int *' dangles when the program ends [nvl-to-volatile]}}
    (void)nvl_alloc_nv(heap, 1, struct handle);  // expected-error {{'nvl_heap_t *' dangles when the program ends}}
    nvl_set_root(heap, l);                       // expected-error {{[nvl-incomplete]}}
    nvl_set_root(heap, &n);                      // expected-error {{changes address space of pointer}} expected-note@nvl.h:* {{passing argument to parameter}}
    nvl_set_root(heap, p);
    nvl_set_root(heap, (nvl int *)0);
    nvl_set_root(heap, NULL);
    nvl_set_root(heap, (nvl void *)p);           // expected-error {{[nvl-type-argument]}}
    nvl float (*rows)[8] = nvl_alloc_nv(heap, n, float[8]);
    nvl int *nvl *pointers = nvl_alloc_nv(heap, 4, nvl int *);
    nvl_set_root(heap, rows);
    nvl_set_root(heap, pointers);
}
