/* Jacobi's iteration for Laplace's equation on a square. */
#ifndef JACOBI_H
#define JACOBI_H

static void sweep(nvl const double *from, nvl double *to, long n) {
    for (long i = 1; i < n - 1; ++i)
        for (long j = 1; j < n - 1; ++j)
            to[i * n + j] = 0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] +
                                    from[i * n + j - 1] + from[i * n + j + 1]);
}

static double sum_of(nvl const double *grid, long n) {
    double sum = 0.0;
    for (long at = 0; at < n * n; ++at)
        sum += grid[at] * (double)(at % 7 + 1);
    return sum;
}

#endif
