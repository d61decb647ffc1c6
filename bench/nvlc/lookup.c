/* Cross sections of materials, looked up in large tables that nobody changes, as XSBench does: for
 * a random energy and material, each nuclide's table is searched and interpolated. Sums are kept
 * every BATCH lookups. Work is counted in lookups. */
#include "kernel.h"

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
    long done;
    double sums[KINDS];
    nvl struct point *nuclides[NUCLIDES];
};

const char *const rows[] = {"lookup", NULL};
static nvl struct tables *tables;

void set_up(nvl_heap_t *heap, long size) {
    tables = nvl_alloc_nv(heap, 1, struct tables);
    nvl_set_root(heap, tables);
    tables->points = size;
    for (long nuclide = 0; nuclide < NUCLIDES; ++nuclide) {
        nvl struct point *points = nvl_alloc_nv(heap, size, struct point);
        /* Energies ascend: each lies in a step of its own. */
        for (long at = 0; at < size; ++at) {
            uint64_t index = ((uint64_t)nuclide << 32) + (uint64_t)at * (KINDS + 1);
            points[at].energy = ((double)at + fraction_at(index)) / (double)size;
            for (int kind = 0; kind < KINDS; ++kind)
                points[at].sections[kind] = fraction_at(index + 1 + (uint64_t)kind);
        }
        tables->nuclides[nuclide] = points;
    }
}

void reset(void) {
    for (int kind = 0; kind < KINDS; ++kind)
        tables->sums[kind] = 0.0;
    tables->done = 0;
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

static void look_up(nvl const struct tables *all, uint64_t number, double *sums) {
    double energy = fraction_at(2 * number);
    uint64_t material = random_at(2 * number + 1) % MATERIALS;
    for (uint64_t nuclide = material; nuclide < NUCLIDES; nuclide += 1 + material)
        contribute(all->nuclides[nuclide], all->points, energy, 1.0 / (double)(1 + nuclide), sums);
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
