/* Jacobi's iteration for Laplace's equation on a square, whose left edge is hot: each sweep is a
 * transaction. Work is counted in sweeps. */
#include "kernel.h"

#include "jacobi.h" /* of examples/nvl */

struct plate {
    long done;
    /* An even sweep reads the first, and writes the second. */
    nvl double *grids[2];
};

#ifndef JACOBI_ROW
#define JACOBI_ROW "jacobi"
#endif
const char *const rows[] = {JACOBI_ROW, NULL};
static nvl struct plate *plate;
static long side;

void set_up(nvl_heap_t *heap, long size) {
    side = size;
    plate = nvl_alloc_nv(heap, 1, struct plate);
    nvl_set_root(heap, plate);
    plate->grids[0] = nvl_alloc_nv(heap, size * size, double);
    plate->grids[1] = nvl_alloc_nv(heap, size * size, double);
}

void reset(void) {
    for (int which = 0; which < 2; ++which) {
        nvl double *grid = plate->grids[which];
        for (long at = 0; at < side * side; ++at)
            grid[at] = at % side == 0 ? 100.0 : 0.0;
    }
    plate->done = 0;
}

void run(nvl_heap_t *heap, int row, long work) {
    (void)row;
    long n = side;
    while (plate->done < work) {
        nvl double *from = plate->grids[plate->done % 2];
        nvl double *to = plate->grids[(plate->done + 1) % 2];
#pragma nvl atomic heap(heap) clobber(to [0:n * n]) backup(plate->done)
        {
            sweep(from, to, n);
            plate->done++;
        }
        WROTE_ROW(to, n * n);
        WROTE(plate->done);
        DURABLE();
    }
}

double answer(int row) {
    (void)row;
    return sum_of(plate->grids[plate->done % 2], side);
}
