/* The four kernels of STREAM (McCalpin) over doubles, not in transactions: what a kernel stores is
 * durable before the number of those that are done goes up, and one that was interrupted is run
 * again, which gives the same. `stream HEAP [LENGTH [ROUNDS]]` */
#include "heap.h"
#include "run.h"
#include <nvl.h>

struct vectors {
    long length;
    long rounds;
    /* Kernels that are done, four to a round. */
    long done;
    nvl double *a;
    nvl double *b;
    nvl double *c;
};

static nvl struct vectors *begin(nvl_heap_t *heap, long n, long rounds) {
    nvl struct vectors *made = nvl_alloc_nv(heap, 1, struct vectors);
    nvl double *a = nvl_alloc_nv(heap, n, double);
    for (long j = 0; j < n; ++j)
        a[j] = fraction_at((uint64_t)j);
    made->length = n;
    made->rounds = rounds;
    made->a = a;
    made->b = nvl_alloc_nv(heap, n, double);
    made->c = nvl_alloc_nv(heap, n, double);
    nvl_set_root(heap, made);
    return made;
}

static void kernel(nvl double *a, nvl double *b, nvl double *c, long n, int which) {
    const double scalar = 0.42;
    switch (which) {
    case 0:
        for (long j = 0; j < n; ++j)
            c[j] = a[j];
        break;
    case 1:
        for (long j = 0; j < n; ++j)
            b[j] = scalar * c[j];
        break;
    case 2:
        for (long j = 0; j < n; ++j)
            c[j] = a[j] + b[j];
        break;
    default:
        for (long j = 0; j < n; ++j)
            a[j] = b[j] + scalar * c[j];
    }
}

int main(int argc, char **argv) {
    nvl_heap_t *heap = heap_of(argc, argv);
    nvl struct vectors *vectors = nvl_get_root(heap, struct vectors);
    if (!vectors)
        vectors = begin(heap, argument(argc, argv, 2, 100000), argument(argc, argv, 3, 50));
    long n = vectors->length;
    nvl double *a = vectors->a;
    nvl double *b = vectors->b;
    nvl double *c = vectors->c;
    while (vectors->done < 4 * vectors->rounds) {
        kernel(a, b, c, n, (int)(vectors->done % 4));
        /* What the kernel stored is durable before a transaction begins. Stored plainly, the number
         * might be durable before it, or many kernels later. */
#pragma nvl atomic heap(heap)
        vectors->done++;
    }
    double sum = 0.0;
    for (long j = 0; j < n; ++j)
        sum += a[j] + 2 * b[j] + 3 * c[j];
    printf("stream %ld %ld: %.17g\n", n, vectors->rounds, sum);
    nvl_close(heap);
    return 0;
}
