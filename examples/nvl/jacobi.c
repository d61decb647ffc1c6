/* Jacobi's iteration for Laplace's equation on a square, whose left edge is hot. `jacobi [SIDE
 * [SWEEPS]]` */
#include "run.h"

static void sweep(const double *from, double *to, long n) {
    for (long i = 1; i < n - 1; ++i)
        for (long j = 1; j < n - 1; ++j)
            to[i * n + j] = 0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] +
                                    from[i * n + j - 1] + from[i * n + j + 1]);
}

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
    double sum = 0.0;
    for (long at = 0; at < n * n; ++at)
        sum += grids[sweeps % 2][at] * (double)(at % 7 + 1);
    printf("jacobi %ld %ld: %.17g\n", n, sweeps, sum);
    return 0;
}
