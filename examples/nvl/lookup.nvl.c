/* Cross sections of materials, looked up in large tables that nobody changes, as codes do that
 * follow neutrons. The tables are made once, and are there at once in the next run; sums are kept
 * every BATCH lookups. `lookup HEAP [LOOKUPS [POINTS]]` */
#include "heap.h"
#include "run.h"
#include <nvl.h>
#include <string.h>

#define NUCLIDES 32
#define KINDS 5
#define MATERIALS 12
#define BATCH 1000

struct point {
    double energy;
    double sections[KINDS];
};

struct tables {
    long points;
    long lookups;
    long done;
    double sums[KINDS];
    nvl struct point *nuclides[NUCLIDES];
};

static void fill(nvl struct point *points, long count, uint64_t nuclide) {
    /* Energies ascend: each lies in a step of its own. */
    for (long at = 0; at < count; ++at) {
        uint64_t index = (nuclide << 32) + (uint64_t)at * (KINDS + 1);
        points[at].energy = ((double)at + fraction_at(index)) / (double)count;
        for (int kind = 0; kind < KINDS; ++kind)
            points[at].sections[kind] = fraction_at(index + 1 + (uint64_t)kind);
    }
}

/* Adds what a nuclide contributes at an energy. */
static void contribute(nvl const struct point *points, long count, double energy, double weight,
                       double *sums) {
    long low = 0, high = count - 1;
    while (high - low > 1) {
        long middle = low + (high - low) / 2;
        if (points[middle].energy > energy)
            high = middle;
        else
            low = middle;
    }
    double share = (energy - points[low].energy) / (points[high].energy - points[low].energy);
    for (int kind = 0; kind < KINDS; ++kind)
        sums[kind] += weight * (points[low].sections[kind] +
                                share * (points[high].sections[kind] - points[low].sections[kind]));
}

static void look_up(nvl const struct tables *tables, uint64_t number, double *sums) {
    double energy = fraction_at(2 * number);
    uint64_t material = random_at(2 * number + 1) % MATERIALS;
    for (uint64_t nuclide = material; nuclide < NUCLIDES; nuclide += 1 + material)
        contribute(tables->nuclides[nuclide], tables->points, energy, 1.0 / (double)(1 + nuclide),
                   sums);
}

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
