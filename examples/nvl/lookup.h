/* Cross sections of materials, looked up in large tables that nobody changes, as codes do that
 * follow neutrons: for a random energy and material, each nuclide's table is searched and
 * interpolated. */
#ifndef LOOKUP_H
#define LOOKUP_H

#include "run.h"

#define NUCLIDES 32
#define KINDS 5
#define MATERIALS 12

struct point {
    double energy;
    double sections[KINDS];
};

struct tables {
    long points;
    long done;
    double sums[KINDS];
    nvl struct point *nuclides[NUCLIDES];
    /* How many there are to be. */
    long lookups;
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

#endif
