/* Stores outside of transactions, in loops. Work is counted in elements of 8 bytes. */
#include "kernel.h"

#ifndef FILL_ROW
#define FILL_ROW(name) name
#endif

/* What is stored is durable at each end. */
#define APART __attribute__((noinline))

struct arrays {
    nvl double *a;
    nvl double *b;
};

/* `fill` stores one element after the other; how many is known before. `fill_until` stores to two
 * arrays in turn until it meets the end of its input. */
const char *const rows[] = {FILL_ROW("fill"), FILL_ROW("fill_until"), NULL};
static nvl struct arrays *arrays;
static double *input;
static long length;

void set_up(nvl_heap_t *heap, long size) {
    length = size;
    arrays = nvl_alloc_nv(heap, 1, struct arrays);
    nvl_set_root(heap, arrays);
    arrays->a = nvl_alloc_nv(heap, size, double);
    arrays->b = nvl_alloc_nv(heap, size, double);
    input = malloc(((size_t)size + 1) * sizeof *input);
    if (!input)
        abort();
}

void reset(void) {
    nvl double *a = arrays->a, *b = arrays->b;
    for (long j = 0; j < length; ++j)
        a[j] = b[j] = 0.0;
    for (long j = 0; j < length; ++j)
        input[j] = fraction_at((uint64_t)j);
}

APART static void fill(nvl double *a, double value, long n) {
    for (long j = 0; j < n; ++j)
        a[j] = value + (double)j;
    WROTE_ROW(a, n);
    DURABLE();
}

APART static long fill_until(nvl double *a, nvl double *b, const double *from, double value) {
    long j = 0;
    for (; from[j] >= 0.0; ++j) {
        a[j] = from[j] + value;
        b[j] = from[j] - value;
    }
    WROTE_ROW(a, j);
    WROTE_ROW(b, j);
    DURABLE();
    return j;
}

void run(nvl_heap_t *heap, int row, long work) {
    (void)heap;
    nvl double *a = arrays->a, *b = arrays->b;
    for (double pass = 1.0; work > 0; ++pass) {
        if (row == 0) {
            long n = work < length ? work : length;
            fill(a, pass, n);
            work -= n;
        } else {
            long n = work / 2 + 1 < length ? work / 2 + 1 : length;
            double kept = input[n];
            input[n] = -1.0;
            work -= 2 * fill_until(a, b, input, pass);
            input[n] = kept;
        }
    }
}

double answer(int row) {
    (void)row;
    nvl double *a = arrays->a, *b = arrays->b;
    double sum = 0.0;
    for (long j = 0; j < length; ++j)
        sum += a[j] * (double)(j % 7 + 1) + b[j] * (double)(j % 5 + 1);
    return sum;
}
