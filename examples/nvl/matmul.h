/* a = b * c, dense, of order n. */
#ifndef MATMUL_H
#define MATMUL_H

#include "run.h"

static void fill(nvl float *b, nvl float *c, long n) {
    for (long at = 0; at < n * n; ++at) {
        b[at] = (float)fraction_at((uint64_t)at);
        c[at] = (float)fraction_at((uint64_t)(n * n + at));
    }
}

/* `count` rows of a, from `first` on. */
static void multiply_rows(nvl float *a, nvl const float *b, nvl const float *c, long n, long first,
                          long count) {
    for (long i = first; i < first + count; ++i)
        for (long j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (long k = 0; k < n; ++k)
                sum += b[i * n + k] * c[k * n + j];
            a[i * n + j] = sum;
        }
}

static double sum_of(nvl const float *a, long n) {
    double sum = 0.0;
    for (long at = 0; at < n * n; ++at)
        sum += (double)a[at] * (double)(at % 7 + 1);
    return sum;
}

#endif
