// NVM is allocated in heaps only (paper, §3.6).
// RUN: %verify
#include <nvl.h>

nvl int global;                   // expected-error {{'global' cannot be stored in NVM: 'nvl' does not make a variable persistent [nvl-storage]}}
extern nvl int elsewhere;         // expected-error {{[nvl-storage]}}
static nvl int in_file[4];        // expected-error {{[nvl-storage]}}
nvl int *to_nvm;
nvl int *nvl stored_pointer;      // expected-error {{[nvl-storage]}}
nvl int *nvl_wp weak_pointer;     // expected-error {{'nvl_wp' is for members of structs [nvl-weak-place]}}
_Thread_local nvl int per_thread; // expected-error {{[nvl-storage]}}

typedef nvl int stored_int;
stored_int by_name; // expected-error {{[nvl-storage]}}
stored_int *to_named;

nvl int *in_literal = &(nvl int){1}; // expected-error {{the literal cannot be stored in NVM}}

void locals(void) {
    nvl int automatic;        // expected-error {{'automatic' cannot be stored in NVM}}
    static nvl int statical;  // expected-error {{[nvl-storage]}}
    register nvl int fast;    // expected-error {{[nvl-storage]}}
    nvl int rows[2][3];       // expected-error {{[nvl-storage]}}
    nvl int *pointer = NULL;
    nvl int *nvl_wp weak;     // expected-error {{[nvl-weak-place]}}
    static nvl int *statical_pointer;
    (void)pointer;
    (void)statical_pointer;
    (void)(nvl int){1};       // expected-error {{compound literal in function scope may not be qualified with an address space}}
    for (nvl int i = 0;;)     // expected-error {{[nvl-storage]}}
        break;
}

// What a parameter or a function has is a value.
void value(nvl int x);                    // expected-error {{parameter 'x' cannot be stored in NVM: arguments are values [nvl-parameter]}}
void unnamed(nvl int, int y);             // expected-error {{[nvl-parameter]}}
void pointer_value(nvl int *nvl p);       // expected-error {{[nvl-parameter]}}
void weak_value(nvl int *nvl_wp p);       // expected-error {{[nvl-weak-place]}}
void by_type_name(stored_int a[3]);       // expected-error {{array parameter 'a' gets 'nvl' from elsewhere than its own declaration [nvl-array-parameter]}}
nvl int returned(void);                   // expected-error {{function 'returned' cannot return an object in NVM: what it returns is a value [nvl-return]}}
typedef void callback(nvl int);           // expected-error {{[nvl-parameter]}}
void (*pointer_to_function)(nvl int x);   // expected-error {{[nvl-parameter]}}

// Allowed: arrays as parameters are pointers.
void arrays(int n, nvl float a[], nvl float b[3], nvl float c[n][n], nvl float d[static 2],
            nvl float[], nvl float *nvl e[4], nvl int *f);
void prototype(int, nvl float[*]);
float sum(int n, nvl float a[n][n]) {
    float s = 0;
    for (int i = 0; i < n; i++)
        s += a[i][i];
    return s;
}
nvl int *pointer_returned(void);
