/* Jacobi's iteration for Laplace's equation on a square, whose left edge is hot. `jacobi [SIDE
 * [SWEEPS]]` */
#include "run.h"

#define nvl /* In plain memory it means nothing. */
#include "jacobi.h"

int main(int argc, char **argv) {
    long n = argument(argc, argv, 1, 256);
    long sweeps = argument(argc, argv, 2, 200);
    double *grids[2] = {calloc((size_t)(n * n), sizeof(double)),
                        calloc((size_t)(n * n), sizeof(double))};
    if (!grids[0] || !grids[1])
        return 1;
    for (long i = 0; i < n; ++i)
        grids[0][i * n] = grids[1][i * n] = 100.0;
    for (long done = 0; done < sweeps; ++done)
        sweep(grids[done % 2], grids[(done + 1) % 2], n);
    double sum = sum_of(grids[sweeps % 2], n);
    printf("jacobi %ld %ld: %.17g\n", n, sweeps, sum);
    return 0;
}
