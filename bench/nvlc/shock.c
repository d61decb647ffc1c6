/* Gas in a tube behind a diaphragm that breaks (Sod's problem), in the place of LULESH: a solver
 * with steps in time, whose cells are read before they are written, so that each step keeps a
 * backup of them. Work is counted in steps. */
#include "kernel.h"

#include "shock.h" /* of examples/nvl */

struct tube {
    long done;
    double time;
    nvl struct cell *cells;
};

const char *const rows[] = {"shock", NULL};
static nvl struct tube *tube;
static struct cell *scratch;
static long length;

void set_up(nvl_heap_t *heap, long size) {
    length = size;
    tube = nvl_alloc_nv(heap, 1, struct tube);
    nvl_set_root(heap, tube);
    tube->cells = nvl_alloc_nv(heap, size, struct cell);
    scratch = calloc((size_t)size, sizeof *scratch);
    if (!scratch)
        exit(1);
}

void reset(void) {
    fill(tube->cells, length);
    tube->time = 0.0;
    tube->done = 0;
}

void run(nvl_heap_t *heap, int row, long work) {
    (void)row;
    long n = length;
    nvl struct cell *cells = tube->cells;
    while (tube->done < work) {
#pragma nvl atomic heap(heap) backup(cells [0:n], tube->time, tube->done)
        {
            tube->time += step(cells, scratch, n);
            tube->done++;
        }
        WROTE_ROW(cells, n);
        WROTE(tube->time);
        WROTE(tube->done);
        DURABLE();
    }
}

double answer(int row) {
    (void)row;
    return tube->time + sum_of(tube->cells, length);
}
