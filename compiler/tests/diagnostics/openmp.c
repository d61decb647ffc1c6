// Threads of OpenMP in a transaction.
// RUN: %verify -fopenmp
#include <nvl.h>

void f(nvl_heap_t *h, nvl int *p, int n) {
#pragma nvl atomic heap(h)
#pragma omp parallel for // expected-error {{OpenMP threads inside a transaction: what they write would not be part of it [nvl-openmp]}}
    for (int i = 0; i < n; i++)
        p[i] = i;
#pragma nvl atomic heap(h)
    {
#pragma omp task // expected-error {{[nvl-openmp]}}
        p[0] = 1;
#pragma nvl atomic heap(h)
        {
#pragma omp parallel // expected-error {{[nvl-openmp]}}
            p[1] = 1;
        }
    }
// Allowed: no threads, or transactions in the threads.
#pragma nvl atomic heap(h)
#pragma omp simd
    for (int i = 0; i < n; i++)
        p[i] = i;
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
#pragma nvl atomic heap(h)
        p[i] = i;
    }
}
