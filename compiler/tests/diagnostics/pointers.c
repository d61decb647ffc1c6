// What objects in NVM may consist of (paper, §3.4, Table 1).
// RUN: %verify
#include <nvl.h>

struct plain {
    struct plain *next; // expected-note {{member 'next' of 'struct plain'}}
};
void use_plain(nvl struct plain *p); // expected-error {{a pointer in NVM to volatile memory: 'struct plain *' dangles when the program ends [nvl-to-volatile]}}
// Each struct is reported once.
void use_again(nvl struct plain *p);

struct function {
    int (*compare)(int, int); // expected-note {{member 'compare'}}
};
void use_function(nvl struct function *p); // expected-error {{[nvl-to-volatile]}}

struct inner {
    char *name; // expected-note {{member 'name' of 'struct inner'}}
};
struct deep {
    int n;
    struct inner rows[2][2];
};
typedef nvl struct deep stored_deep;
void use_deep(stored_deep *p); // expected-error {{'char *' dangles}}
void use_deep_again(nvl struct deep *p);

// Only looked at when the definition is there.
struct later;
nvl struct later *of_later; // expected-error {{[nvl-to-volatile]}}
struct later {
    void *bytes; // expected-note {{member 'bytes' of 'struct later'}}
};

struct typeless {
    nvl void *any; // expected-note {{member 'any'}}
};
nvl struct typeless *of_typeless; // expected-error {{a pointer in NVM needs a target type: 'nvl void *' hides what it leads to [nvl-stored-void]}}

struct tail {
    int n;
    nvl int *rows[]; // expected-note {{member 'rows'}}
};
nvl struct tail *of_tail; // expected-error {{pointers into NVM in the flexible array 'rows' have no room: nvl_alloc_nv allocates whole objects [nvl-flexible]}}

struct __attribute__((packed)) tight {
    char c;
    nvl int *p; // expected-note {{member 'p'}}
};
nvl struct tight *of_tight; // expected-error {{the pointer 'p' is in a packed struct: pointers into NVM are stored at multiples of 8 [nvl-packed]}}

struct atomic {
    nvl int *_Atomic p; // expected-note {{member 'p'}}
};
nvl struct atomic *of_atomic; // expected-error {{is an atomic pointer, or a struct that has one: a store to it would not be counted [nvl-atomic-pointer]}}

struct has_pointer {
    nvl int *p;
};
struct atomic_struct {
    _Atomic(struct has_pointer) s; // expected-note {{member 's'}}
};
nvl struct atomic_struct *of_atomic_struct; // expected-error {{[nvl-atomic-pointer]}}

union either {
    long number;
    nvl int *pointer; // expected-error {{member 'pointer' of a union is a pointer into NVM, or has one: nothing says when it is one [nvl-union]}}
};

int *nvl *direct;             // expected-error {{'int *' dangles}}
int *nvl (*rows)[3];          // expected-error {{[nvl-to-volatile]}}
void parameter(int *nvl a[]); // expected-error {{[nvl-to-volatile]}}
nvl void *nvl *typeless;      // expected-error {{[nvl-stored-void]}}

// Allowed: plain data of any kind, pointers into NVM, and volatile structs with such pointers.
struct data {
    int n : 3;
    unsigned m : 5;
    double d;
    float f[4];
    union {
        int i;
        float g;
    } u;
    enum { A, B } e;
    long double l;
    char tail[];
};
struct good {
    nvl struct data *data;
    nvl struct good *links[2];
    nvl int *nvl *pointers;
};
nvl struct good *good;
struct volatile_user {
    nvl struct good *root;
    char *name;
};
struct volatile_user *user;
