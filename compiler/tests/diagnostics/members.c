// Members, weak pointers, and structs that exist in NVM only (paper, §3.3 and §3.7).
// RUN: %verify
#include <nvl.h>

typedef nvl int stored_int;

struct node {
    int value;
    nvl struct node *next;
    nvl struct node *nvl_wp previous; // expected-note 8 {{because of its member 'previous'}}
    nvl struct node *nvl_wp others[3];
};

struct marked {
    nvl int count;           // expected-note {{because of its member 'count'}}
    nvl struct node *nvl strong;
};

struct wrong {
    stored_int by_name;      // expected-error {{member 'by_name' gets 'nvl' from a type name [nvl-member]}}
    int nvl_wp number;       // expected-error {{'nvl_wp' is for pointers into NVM, and 'int' is none [nvl-weak-type]}}
    int *nvl_wp to_volatile; // expected-error {{[nvl-weak-type]}}
    int nvl_wp row[3];       // expected-error {{[nvl-weak-type]}}
};

struct outer {
    struct node inner[2];
};

struct node global;                    // expected-error {{objects of type 'struct node' exist in NVM only [nvl-only-in-nvm]}}
struct outer around;                   // expected-error {{objects of type 'struct outer' exist in NVM only}}
void parameter(struct node n);         // expected-error {{[nvl-only-in-nvm]}}
struct node returned(nvl int *p);      // expected-error {{[nvl-only-in-nvm]}}

int use(nvl struct node *p, struct node *v, struct marked *m) {
    struct node local;                 // expected-error {{[nvl-only-in-nvm]}}
    struct node rows[2];               // expected-error {{objects of type 'struct node[2]' exist in NVM only}}
    p->previous = p->next;
    p->next = p->previous;
    p->others[1] = p->others[2];
    if (p->previous == p)
        *p = *p->next;
    (void)(struct node){1, NULL, NULL, {NULL}}; // expected-error {{[nvl-only-in-nvm]}}
    return v->value + m->count;        // expected-error {{objects of type 'struct node' exist}} expected-error {{objects of type 'struct marked' exist}}
}

void addresses(nvl struct node *p, int i) {
    nvl struct node *nvl *strong = &p->next;
    (void)&p->previous;         // expected-error {{the address of the weak pointer 'previous' would not say that it is weak [nvl-weak-address]}}
    (void)&p->others[i];        // expected-error {{[nvl-weak-address]}}
    (void)&p->others;           // expected-error {{[nvl-weak-address]}}
    strong = p->others;         // expected-error {{[nvl-weak-address]}}
    strong = p->others + i;     // expected-error {{[nvl-weak-address]}}
    (void)*p->others;
    (void)strong;
    (void)sizeof(p->others);
}
