/* The kernel TRIAD of STREAM (McCalpin). Its transactions are single elements, or whole arrays with
 * PER_LOOP. Work is counted in elements. */
#include "kernel.h"

struct vectors {
    nvl double *a;
    nvl double *b;
    nvl double *c;
};

const char *const rows[] = {"triad", NULL};
static nvl struct vectors *vectors;
static long length;

void set_up(nvl_heap_t *heap, long size) {
    length = size;
    vectors = nvl_alloc_nv(heap, 1, struct vectors);
    nvl_set_root(heap, vectors);
    vectors->a = nvl_alloc_nv(heap, size, double);
    vectors->b = nvl_alloc_nv(heap, size, double);
    vectors->c = nvl_alloc_nv(heap, size, double);
    nvl double *b = vectors->b;
    nvl double *c = vectors->c;
    for (long j = 0; j < size; ++j) {
        b[j] = fraction_at((uint64_t)j);
        c[j] = fraction_at((uint64_t)(size + j));
    }
}

void reset(void) {
    nvl double *a = vectors->a;
    for (long j = 0; j < length; ++j)
        a[j] = 0.0;
}

static void triad(nvl_heap_t *heap, nvl double *a, nvl const double *b, nvl const double *c,
                  double scalar, long n) {
#ifdef PER_LOOP
#pragma nvl atomic heap(heap) clobber(a [0:n])
    for (long j = 0; j < n; ++j)
        a[j] = b[j] + scalar * c[j];
#else
    for (long j = 0; j < n; ++j) {
#pragma nvl atomic heap(heap) clobber(a[j])
        a[j] = b[j] + scalar * c[j];
    }
#endif
    WROTE_ROW(a, n);
    DURABLE();
}

void run(nvl_heap_t *heap, int row, long work) {
    (void)row;
    for (long pass = 1; work > 0; ++pass, work -= length)
        triad(heap, vectors->a, vectors->b, vectors->c, (double)pass,
              work < length ? work : length);
}

double answer(int row) {
    (void)row;
    double sum = 0.0;
    for (long j = 0; j < length; ++j)
        sum += vectors->a[j] * (double)(j % 7 + 1);
    return sum;
}
