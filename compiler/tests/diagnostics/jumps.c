// A jump past the initialization of a pointer into NVM (paper, §3.7).
// RUN: %verify
#include <nvl.h>

struct holder {
    nvl int *p;
};

int forward(int c, nvl int *q) {
    if (c)
        goto out;        // expected-error {{jump bypasses the initialization of 'p' [nvl-jump]}}
    nvl int *p = q;      // expected-note {{'p' is declared here}}
out:
    return *p;
}

int in_struct(int c) {
    if (c)
        goto out;        // expected-error {{jump bypasses the initialization of 'h'}}
    struct holder h;     // expected-note {{'h' is declared here}}
    h.p = NULL;
out:
    return h.p == NULL;
}

int cases(int c, nvl int *q) {
    switch (c) {
        nvl int *p;      // expected-note 2 {{'p' is declared here}}
    case 1:              // expected-error {{jump bypasses the initialization of 'p'}}
        p = q;
        return *p;
    default:             // expected-error {{[nvl-jump]}}
        return 0;
    }
}

int into_loop(int c, nvl int *q) {
    if (c)
        goto inside;     // expected-error {{[nvl-jump]}}
    for (nvl int *p = q; p; p = NULL) { // expected-note {{'p' is declared here}}
    inside:
        c++;
    }
    return c;
}

int indirect(int c, nvl int *q) {
    void *where = c ? &&one : &&two;
    goto *where;         // expected-error {{jump bypasses the initialization of 'p'}}
one:;
    nvl int *p = q;      // expected-note {{'p' is declared here}}
two:
    return *p;
}

// Allowed: backwards, out of a scope, within one, past other variables.
int allowed(int c, nvl int *q) {
again:;
    nvl int *p = q;
    if (c > 3)
        goto end;
    {
        nvl int *inner = p;
        if (inner && c++ < 2)
            goto again;
    }
    switch (c) {
    case 1: {
        nvl int *own = q;
        return *own;
    }
    case 2:
        break;
    }
end:;
    int number = 1;
    while (c--) {
        nvl int *r = p;
        if (!r)
            continue;
        if (*r)
            break;
    }
    return *p + number;
}
