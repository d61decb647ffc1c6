// Functions that know nothing about NVM (paper, §3.8).
// RUN: %verify -std=c17 -fasm-blocks
#include <nvl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
    int value;
    nvl struct list *next;
};
struct weak {
    nvl struct weak *nvl_wp up;
};
struct named {
    char name[8];
};

void library(nvl char *text, char *buffer, nvl struct list *l, struct list *v, nvl int *n,
             nvl struct named *named) {
    free(text);                         // expected-error {{'free' knows nothing about NVM, so 'nvl char *' cannot be its argument [nvl-library]}}
    (void)strlen(text);                 // expected-error {{[nvl-library]}}
    (void)strcpy(buffer, text);         // expected-error {{[nvl-library]}}
    printf("%s\n", text);               // expected-error {{'printf' knows nothing about NVM, so 'nvl char *' cannot be its argument}}
    printf("%d\n", *n);
    printf("%s\n", named->name);        // expected-error {{'printf' knows nothing about NVM, so 'nvl char *' cannot be its argument}}
    fprintf(stderr, text);              // expected-error {{[nvl-library]}} expected-warning {{format string is not a string literal}} expected-note {{treat the string as an argument}}
    memcpy(text, buffer, 3);
    memcpy(buffer, text, 3);
    memset(text, 7, 3);
    (void)memcmp(buffer, text, 3);
    memmove(l, l->next, sizeof *l);
    memcpy(l, v, sizeof *l);
    memcpy(v, l, sizeof *l);
    memset(l, 0, sizeof *l);
    memset(l, 1, sizeof *l);            // expected-error {{has pointers into NVM, which memset can make null only [nvl-memset]}}
    memcpy(l, buffer, sizeof *l);       // expected-error {{would make one type of another where there are pointers into NVM}}
    memcpy(n, l, sizeof *n);            // expected-error {{[nvl-cast-type]}}
    (void)memcpy(text, buffer, 3);
    char *lost = memcpy(text, buffer, 3); // expected-error {{the value of 'memcpy' is a pointer that forgot that it leads into NVM [nvl-library-result]}}
    (void)lost;
    (void)*(int *)__builtin_assume_aligned(n, 8); // expected-error {{[nvl-library-result]}}
    if (__builtin_add_overflow(*n, 1, n))
        __builtin_prefetch(__builtin_addressof(*n));
}

void weak(nvl struct weak *w, nvl struct weak *x, char *buffer) {
    memcpy(w, x, sizeof *w);
    memcpy(buffer, w, sizeof *w);       // expected-error {{[nvl-cast-type]}}
}

void many(int count, ...);
void old(); // expected-warning 0+ {{}}
void plain(const char *text);
void takes(nvl char *text);

void unnamed(nvl char *text, nvl struct list *l) {
    struct list copy = *l;
    many(1, text);                      // expected-error {{[nvl-variadic]}}
    many(1, copy);                      // expected-error {{'struct list' cannot be passed to a variable argument}}
    many(1, l->value, *text);
    old(text);                          // expected-error {{'nvl char *' cannot be passed to a function without a prototype: its type gets lost [nvl-unprototyped]}} expected-warning 0+ {{}}
    plain(text);                        // expected-error {{changes address space of pointer}} expected-note@-9 {{passing argument}}
    takes(text);
    void (*through)(int, ...) = many;
    through(1, text);                   // expected-error {{[nvl-variadic]}}
}

void arguments(int count, ...) {
    va_list list;
    va_start(list, count);
    nvl char *text = va_arg(list, nvl char *); // expected-error {{cannot come from a variable argument: nothing says that it is one [nvl-va-arg]}}
    (void)text;
    va_end(list);
}

void atomics(nvl struct list *l, nvl int *n, nvl struct list *other) {
    __atomic_store_n(&l->next, other, __ATOMIC_SEQ_CST);      // expected-error {{an atomic operation on it would not be counted [nvl-atomic]}}
    (void)__sync_bool_compare_and_swap(&l->next, other, l);   // expected-error {{[nvl-atomic]}}
    __atomic_store(l, l->next, __ATOMIC_SEQ_CST);             // expected-error {{[nvl-atomic]}}
    (void)__atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST);
    (void)__sync_fetch_and_add(n, 1);
}

void assembly(nvl int *n) {
    int value = *n;
    nvl int *two[2] = {n, n};
    struct list copy = {0, NULL};
    __asm__("movl $1, %0" : "=m"(*n));       // expected-error {{inline assembly cannot have an operand in NVM}}
    __asm__("movl $1, %0" : "=r"(*n));       // expected-error {{[nvl-asm]}}
    __asm__("" : : "r"(*n));
    __asm__("" : : "m"(*n));                 // expected-error {{[nvl-asm]}}
    __asm__("movl $1, (%0)" : : "r"(n));     // expected-error {{inline assembly cannot have the pointer into NVM 'nvl int *' as an operand: what it writes there would not be logged [nvl-asm-pointer]}}
    __asm__("" : : "r"(&n[1]) : "memory");   // expected-error {{'nvl int *' as an operand}}
    __asm__("" : "=r"(n));                   // expected-error {{[nvl-asm-pointer]}}
    __asm__("" : "+r"(n));                   // expected-error {{[nvl-asm-pointer]}}
    __asm__("" : : "m"(n));                  // expected-error {{[nvl-asm-pointer]}}
    __asm__("" : : "m"(two));                // expected-error {{'nvl int *[2]' as an operand}}
    __asm__("" : : "m"(copy));               // expected-error {{'struct list' as an operand}}
    __asm__("" : "=r"(value) : "r"(&value), "0"(*n + 1) : "memory");
    __asm { mov rax, n }                     // expected-error {{[nvl-asm-pointer]}}
}
