/* Cross sections of materials, as lookup.h looks them up. `lookup [LOOKUPS [POINTS]]` */
#define nvl /* In plain memory it means nothing. */
#include "lookup.h"

int main(int argc, char **argv) {
    long lookups = argument(argc, argv, 1, 200000);
    struct tables tables = {.points = argument(argc, argv, 2, 2000)};
    for (long nuclide = 0; nuclide < NUCLIDES; ++nuclide) {
        tables.nuclides[nuclide] = calloc((size_t)tables.points, sizeof(struct point));
        if (!tables.nuclides[nuclide])
            return 1;
        fill(tables.nuclides[nuclide], tables.points, (uint64_t)nuclide);
    }
    for (long done = 0; done < lookups; ++done)
        look_up(&tables, (uint64_t)done, tables.sums);
    printf("lookup %ld %ld:", lookups, tables.points);
    for (int kind = 0; kind < KINDS; ++kind)
        printf(" %.17g", tables.sums[kind]);
    printf("\n");
    return 0;
}
