/* Jacobi's iteration for Laplace's equation on a square, whose left edge is hot: each sweep is a
 * transaction. `jacobi HEAP [SIDE [SWEEPS]]` */
#include "heap.h"
#include "run.h"
#include <nvl.h>

#include "jacobi.h"

struct plate {
    long side;
    long sweeps;
    long done;
    /* An even sweep reads the first, and writes the second. */
    nvl double *grids[2];
};

static nvl struct plate *begin(nvl_heap_t *heap, long n, long sweeps) {
    nvl struct plate *made = nvl_alloc_nv(heap, 1, struct plate);
    made->side = n;
    made->sweeps = sweeps;
    for (int which = 0; which < 2; ++which) {
        nvl double *grid = nvl_alloc_nv(heap, n * n, double);
        for (long i = 0; i < n; ++i)
            grid[i * n] = 100.0;
        made->grids[which] = grid;
    }
    nvl_set_root(heap, made);
    return made;
}

static void iterate(nvl_heap_t *heap, nvl struct plate *plate) {
    long n = plate->side;
    while (plate->done < plate->sweeps) {
        nvl double *from = plate->grids[plate->done % 2];
        nvl double *to = plate->grids[(plate->done + 1) % 2];
#pragma nvl atomic heap(heap) clobber(to [0:n * n]) backup(plate->done)
        {
            sweep(from, to, n);
            plate->done++;
        }
    }
}

int main(int argc, char **argv) {
    nvl_heap_t *heap = heap_of(argc, argv);
    nvl struct plate *plate = nvl_get_root(heap, struct plate);
    if (!plate)
        plate = begin(heap, argument(argc, argv, 2, 256), argument(argc, argv, 3, 200));
    iterate(heap, plate);
    long n = plate->side;
    double sum = sum_of(plate->grids[plate->sweeps % 2], n);
    printf("jacobi %ld %ld: %.17g\n", n, plate->sweeps, sum);
    nvl_close(heap);
    return 0;
}
