/* Cross sections of materials, looked up in large tables that nobody changes, as XSBench does: for
 * a random energy and material, each nuclide's table is searched and interpolated. Sums are kept
 * every BATCH lookups. Work is counted in lookups. */
#include "kernel.h"

#include <string.h>

#include "lookup.h" /* of examples/nvl */

#define BATCH 1000

const char *const rows[] = {"lookup", NULL};
static nvl struct tables *tables;

void set_up(nvl_heap_t *heap, long size) {
    tables = nvl_alloc_nv(heap, 1, struct tables);
    nvl_set_root(heap, tables);
    tables->points = size;
    for (long nuclide = 0; nuclide < NUCLIDES; ++nuclide) {
        nvl struct point *points = nvl_alloc_nv(heap, size, struct point);
        fill(points, size, (uint64_t)nuclide);
        tables->nuclides[nuclide] = points;
    }
}

void reset(void) {
    for (int kind = 0; kind < KINDS; ++kind)
        tables->sums[kind] = 0.0;
    tables->done = 0;
}

void run(nvl_heap_t *heap, int row, long work) {
    (void)row;
    double sums[KINDS];
    memcpy(sums, tables->sums, sizeof sums);
    for (long done = tables->done; done < work;) {
        look_up(tables, (uint64_t)done, sums);
        if (++done % BATCH == 0 || done == work) {
#pragma nvl atomic heap(heap) clobber(tables->sums) backup(tables->done)
            {
                memcpy(tables->sums, sums, sizeof sums);
                tables->done = done;
            }
            WROTE(tables->sums);
            WROTE(tables->done);
            DURABLE();
        }
    }
}

double answer(int row) {
    (void)row;
    double sum = 0.0;
    for (int kind = 0; kind < KINDS; ++kind)
        sum += tables->sums[kind];
    return sum;
}
