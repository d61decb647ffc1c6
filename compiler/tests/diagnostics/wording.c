// Clang's own messages say `nvl`, at the place where it is written, whoever gets them and in whatever form.
// RUN: %verify -Wall -Wextra -Wno-unused
// RUN: not %durumcc -fsyntax-only -Wall -Wextra -Wno-unused -ferror-limit=0 %s > %t.text 2>&1
// RUN: FileCheck --check-prefix=TEXT --implicit-check-not=address_space --implicit-check-not=__nvl_ --input-file=%t.text %s
// RUN: not %durumcc -fsyntax-only -w -ferror-limit=3 %s 2>&1 | FileCheck --check-prefix=LIMIT %s
// RUN: not %durumcc -fsyntax-only -Wall -Wextra -Wno-unused -Werror -DWARNINGS %s 2>&1 | FileCheck --check-prefix=ERRORS %s
// RUN: %durumcc -c -Wall -Wextra -Wno-unused -DWARNINGS %s -o %t.o 2>&1 | FileCheck --check-prefix=WARNINGS %s
// RUN: not %durumcc -fsyntax-only -ferror-limit=0 -fdiagnostics-format=sarif -Wno-sarif-format-unstable %s 2>&1 | FileCheck --check-prefix=SARIF --implicit-check-not=address_space %s
// RUN: not %durumcc -fsyntax-only -ferror-limit=0 --serialize-diagnostics %t.dia %s 2> %t.ignored
// RUN: not grep -q -a address_space %t.dia && grep -q -a "nvl int" %t.dia
// RUN: not %durumcc -fsyntax-only -fdiagnostics-format=msvc -ferror-limit=0 %s 2>&1 | FileCheck --check-prefix=MSVC %s
// RUN: not %durumcc -fsyntax-only -DFIX -fdiagnostics-parseable-fixits %s 2>&1 | FileCheck --check-prefix=FIX %s
// RUN: not %durumcc -fsyntax-only -Xclang -verify -DUNEXPECTED %s 2>&1 | FileCheck --check-prefix=UNEXPECTED %s
// RUN: not %durumcc -fsyntax-only -DWITHOUT_HEADER %s 2>&1 | FileCheck --check-prefix=OTHERS %s
#ifdef WITHOUT_HEADER
// In programs without nvl.h nothing is NVM.
int takes(int *p);
// OTHERS: '__attribute__((address_space(1))) int *'
int other(__attribute__((address_space(1))) int *p) { return takes(p); }
#else
#include <nvl.h>

struct list {
    int value;
    nvl struct list *next;
};
typedef struct list list_t;
int takes(int *p);               // expected-note 0+ {{}}

#ifdef WARNINGS
// ERRORS: error: initializing 'nvl int *' with an expression of type 'nvl int const *' discards qualifiers [-Werror,
// ERRORS: error: multiple identical address spaces specified for type [-Werror,
// ERRORS: 2 errors generated.
// WARNINGS: warning: initializing 'nvl int *' with an expression of type 'nvl int const *' discards qualifiers [-W
// WARNINGS: warning: multiple identical address spaces specified for type [-W
// WARNINGS: 2 warnings generated.
void warnings(nvl const int *c) {
    nvl int *p = c;
    nvl nvl int *twice = p;
}
#elif defined(FIX)
// FIX: error: member reference type 'nvl list_t *' (aka 'nvl struct list *') is a pointer; did you mean to use '->'?
// FIX: fix-it:"{{.*}}wording.c":{[[#@LINE+1]]:{{[0-9]+}}-[[#@LINE+1]]:{{[0-9]+}}}:"->"
int fix(nvl list_t *l) { return l.value; }
#elif defined(UNEXPECTED)
// UNEXPECTED: error: 'expected-error' diagnostics seen but not expected:
// UNEXPECTED: Line [[#@LINE+2]]: passing 'nvl int *' to parameter of type 'int *' changes address space of pointer
// UNEXPECTED: 1 error generated.
int unexpected(nvl int *n) { return takes(n); }
#else
void types(nvl struct list *l, nvl list_t *t, int *v, nvl const int *c, nvl int *n, nvl float a[3][4]) {
    // TEXT: wording.c:[[#@LINE+3]]:11: error: passing 'nvl int *' to parameter of type 'int *' changes
    // SARIF: passing 'nvl int *' to parameter of type 'int *' changes
    // MSVC: wording.c([[#@LINE+1]],11): error: passing 'nvl int *' to parameter of type 'int *' changes
    takes(n);                    // expected-error {{passing 'nvl int *' to parameter of type 'int *' changes address space of pointer}}
    // LIMIT: error: passing 'nvl int *'
    n = v;                       // expected-error {{assigning 'int *' to 'nvl int *' changes address space of pointer}}
    v = n;                       // expected-error {{assigning 'nvl int *' to 'int *' changes address space of pointer}}
    // LIMIT: fatal error: too many errors emitted, stopping now
    // LIMIT: 4 errors generated.
    n = c;                       // expected-warning {{assigning to 'nvl int *' from 'nvl int const *' discards qualifiers}}
    l = n;                       // expected-warning {{incompatible pointer types assigning to 'nvl struct list *' from 'nvl int *'}} expected-error {{conversion from 'nvl int *' to 'nvl struct list *'}}
    // What a typedef stands for is still told.
    // TEXT: incompatible pointer types assigning to 'nvl list_t *' (aka 'nvl struct list *') from 'nvl int *'
    t = n;                       // expected-warning {{assigning to 'nvl list_t *' (aka 'nvl struct list *') from 'nvl int *'}} expected-error {{conversion from 'nvl int *' to 'nvl list_t *'}}
    n = 5;                       // expected-error {{assigning to 'nvl int *' from 'int'}} expected-error {{conversion from the integer type 'int' to 'nvl int *'}}
    (void)(n == l);              // expected-warning {{comparison of distinct pointer types ('nvl int *' and 'nvl struct list *')}} expected-error {{conversion from 'nvl struct list *' to 'nvl int *'}}
    (void)(n - a[0]);            // expected-error {{'nvl int *' and 'nvl float *' are not pointers to compatible types}}
    (void)(1 ? n : v);           // expected-error {{('nvl int *' and 'int *') which are pointers to non-overlapping address spaces}}
    *v = *l;                     // expected-error {{assigning to 'int' from incompatible type 'nvl struct list'}}
    n->x = 1;                    // expected-error {{member reference base type 'nvl int' is not a structure or union}}
    n();                         // expected-error {{called object type 'nvl int *' is not a function or function pointer}}
    int **nested = &n;           // expected-error {{initializing 'int **' with an expression of type 'nvl int **' changes address space of nested pointer}}
    __builtin_printf("%d", &n);  // expected-warning {{format specifies type 'int' but the argument has type 'nvl int **'}}
    // In the text of an expression.
    // TEXT: static assertion failed due to requirement '__builtin_types_compatible_p(nvl int *, int *)': no
    _Static_assert(__builtin_types_compatible_p(nvl int *, int *), "no"); // expected-error {{requirement '__builtin_types_compatible_p(nvl int *, int *)'}}
    // By name, at the place where it is written.
    // TEXT: wording.c:[[#@LINE+1]]:10: error: 'nvl' cannot be applied to a statement
    goto nvl;                    // expected-error {{'nvl' cannot be applied to a statement}} expected-error {{expected identifier}}
    // TEXT: wording.c:[[#@LINE+1]]:9: error: multiple address spaces specified for type
    nvl nvl_wp int *both;        // expected-error {{multiple address spaces specified for type}}
}
int redeclared(nvl int *p);      // expected-note {{previous declaration is here}}
int redeclared(int *p);          // expected-error {{conflicting types for 'redeclared'}}
// TEXT: 5 warnings and 19 errors generated.
#endif
#endif
