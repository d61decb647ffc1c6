/* Cross sections of materials, as lookup.h looks them up. The tables are made once, and are there
 * at once in the next run; sums are kept every BATCH lookups. `lookup HEAP [LOOKUPS [POINTS]]` */
#include "heap.h"
#include <nvl.h>
#include <string.h>

#include "lookup.h"

#define BATCH 1000

static nvl struct tables *begin(nvl_heap_t *heap, long lookups, long points) {
    nvl struct tables *made = nvl_alloc_nv(heap, 1, struct tables);
    made->points = points;
    made->lookups = lookups;
    for (long nuclide = 0; nuclide < NUCLIDES; ++nuclide) {
        nvl struct point *table = nvl_alloc_nv(heap, points, struct point);
        fill(table, points, (uint64_t)nuclide);
        made->nuclides[nuclide] = table;
    }
    nvl_set_root(heap, made);
    return made;
}

int main(int argc, char **argv) {
    double sums[KINDS];
    nvl_heap_t *heap = heap_of(argc, argv);
    nvl struct tables *tables = nvl_get_root(heap, struct tables);
    if (!tables)
        tables = begin(heap, argument(argc, argv, 2, 200000), argument(argc, argv, 3, 2000));
    memcpy(sums, tables->sums, sizeof sums);
    for (long done = tables->done; done < tables->lookups;) {
        look_up(tables, (uint64_t)done, sums);
        if (++done % BATCH == 0 || done == tables->lookups) {
#pragma nvl atomic heap(heap) clobber(tables->sums)
            {
                memcpy(tables->sums, sums, sizeof sums);
                tables->done = done;
            }
        }
    }
    printf("lookup %ld %ld:", tables->lookups, tables->points);
    for (int kind = 0; kind < KINDS; ++kind)
        printf(" %.17g", tables->sums[kind]);
    printf("\n");
    nvl_close(heap);
    return 0;
}
