// A mistake is reported once, wherever an expression may stand.
// RUN: %verify
#include <nvl.h>
struct v { nvl int *p; int k; };
void f(int *x, nvl int *q, int n) {
  struct v a = { .k = 1, .p = (nvl int *)x }; // expected-error {{[nvl-cast-qualifier]}}
  struct v b = { (nvl int *)x }; // expected-error {{[nvl-cast-qualifier]}}
  struct v c[2] = { [1] = { .p = (nvl int *)x } }; // expected-error {{[nvl-cast-qualifier]}}
  nvl int *d[] = { (nvl int *)x, q }; // expected-error {{[nvl-cast-qualifier]}}
  (void)a; (void)b; (void)c; (void)d;
  (void)sizeof((nvl int *)x); // expected-error {{[nvl-cast-qualifier]}}
  (void)(struct v){ .p = (nvl int *)x }; // expected-error {{[nvl-cast-qualifier]}}
  (void)_Generic(n, int: (nvl int *)x); // expected-error {{[nvl-cast-qualifier]}}
  nvl int *e = n ? (nvl int *)x : q; // expected-error {{[nvl-cast-qualifier]}}
  switch (n) case 1: e = (nvl int *)x; // expected-error {{[nvl-cast-qualifier]}}
  int arr[sizeof((nvl char *)x)]; (void)arr; // expected-error {{[nvl-cast-qualifier]}}
  (void)__builtin_choose_expr(1, (nvl int *)x, q); // expected-error {{[nvl-cast-qualifier]}}
  (void)e;
  for (nvl int *z = (nvl int *)x; z; z = (nvl int*)x) ; // expected-error 2 {{[nvl-cast-qualifier]}}
  typedef int T[n + (int)(long)(nvl int *)x]; (void)sizeof(T); // expected-error {{[nvl-cast-qualifier]}}
}
