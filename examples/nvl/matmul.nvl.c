/* a = b * c, dense, with a checkpoint every ROWS rows, as in the paper's Figure 4: a run that was
 * killed goes on where the last one stopped. `matmul HEAP [ORDER]` */
#include "heap.h"
#include <nvl.h>

#include "matmul.h"

#define ROWS 8

struct product {
    long order;
    /* Rows of a that are done. */
    long done;
    nvl float *a;
    nvl float *b;
    nvl float *c;
};

static nvl struct product *begin(nvl_heap_t *heap, long n) {
    nvl struct product *made = nvl_alloc_nv(heap, 1, struct product);
    nvl float *b = nvl_alloc_nv(heap, n * n, float);
    nvl float *c = nvl_alloc_nv(heap, n * n, float);
    fill(b, c, n);
    made->order = n;
    made->a = nvl_alloc_nv(heap, n * n, float);
    made->b = b;
    made->c = c;
    /* From here on it is there, and whole. */
    nvl_set_root(heap, made);
    return made;
}

static void multiply(nvl_heap_t *heap, nvl struct product *product) {
    long n = product->order;
    nvl float *a = product->a;
    nvl float *b = product->b;
    nvl float *c = product->c;
    while (product->done < n) {
        long first = product->done;
        long count = n - first < ROWS ? n - first : ROWS;
#pragma nvl atomic heap(heap) clobber(a [first * n:count * n]) backup(product->done)
        {
            multiply_rows(a, b, c, n, first, count);
            product->done = first + count;
        }
    }
}

int main(int argc, char **argv) {
    nvl_heap_t *heap = heap_of(argc, argv);
    nvl struct product *product = nvl_get_root(heap, struct product);
    if (!product)
        product = begin(heap, argument(argc, argv, 2, 256));
    multiply(heap, product);
    long n = product->order;
    printf("matmul %ld: %.17g\n", n, sum_of(product->a, n));
    nvl_close(heap);
    return 0;
}
