/* Gas in a tube, as shock.h computes it. `shock [CELLS [STEPS]]` */
#include "run.h"

#define nvl /* In plain memory it means nothing. */
#include "shock.h"

int main(int argc, char **argv) {
    long n = argument(argc, argv, 1, 2000);
    long steps = argument(argc, argv, 2, 500);
    struct cell *cells = calloc((size_t)n, sizeof *cells);
    struct cell *next = calloc((size_t)n, sizeof *next);
    double time = 0.0;
    if (!cells || !next)
        return 1;
    fill(cells, n);
    for (long done = 0; done < steps; ++done)
        time += step(cells, next, n);
    printf("shock %ld %ld: %.17g at %.17g\n", n, steps, sum_of(cells, n), time);
    return 0;
}
