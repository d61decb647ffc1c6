/* a = b * c, dense, with a checkpoint every ROWS rows, as in the paper's Figure 4. Work is counted
 * in rows of the result. */
#include "kernel.h"

#include "matmul.h" /* of examples/nvl */

#define ROWS 8

struct product {
    /* Rows of a that are done. */
    long done;
    nvl float *a;
    nvl float *b;
    nvl float *c;
};

const char *const rows[] = {"matmul", NULL};
static nvl struct product *product;
static long order;

void set_up(nvl_heap_t *heap, long size) {
    order = size;
    product = nvl_alloc_nv(heap, 1, struct product);
    nvl_set_root(heap, product);
    product->a = nvl_alloc_nv(heap, size * size, float);
    product->b = nvl_alloc_nv(heap, size * size, float);
    product->c = nvl_alloc_nv(heap, size * size, float);
    fill(product->b, product->c, size);
}

void reset(void) {
    nvl float *a = product->a;
    for (long at = 0; at < order * order; ++at)
        a[at] = 0.0f;
    product->done = 0;
}

static void multiply(nvl_heap_t *heap, nvl struct product *made, long n, long last) {
    nvl float *a = made->a;
    nvl const float *b = made->b;
    nvl const float *c = made->c;
    while (made->done < last) {
        long first = made->done;
        long count = last - first < ROWS ? last - first : ROWS;
#pragma nvl atomic heap(heap) clobber(a [first * n:count * n]) backup(made->done)
        {
            multiply_rows(a, b, c, n, first, count);
            made->done = first + count;
        }
        WROTE_ROW(&a[first * n], count * n);
        WROTE(made->done);
        DURABLE();
    }
}

void run(nvl_heap_t *heap, int row, long work) {
    (void)row;
    for (; work > 0; work -= order) {
        multiply(heap, product, order, work < order ? work : order);
        if (work > order)
            product->done = 0;
    }
}

double answer(int row) {
    (void)row;
    return (double)product->done + sum_of(product->a, order);
}
