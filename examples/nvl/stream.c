/* The four kernels of STREAM (McCalpin) over doubles. `stream [LENGTH [ROUNDS]]` */
#include "run.h"

int main(int argc, char **argv) {
    long n = argument(argc, argv, 1, 100000);
    long rounds = argument(argc, argv, 2, 50);
    const double scalar = 0.42;
    double *a = malloc((size_t)n * sizeof *a);
    double *b = malloc((size_t)n * sizeof *b);
    double *c = malloc((size_t)n * sizeof *c);
    if (!a || !b || !c)
        return 1;
    for (long j = 0; j < n; ++j)
        a[j] = fraction_at((uint64_t)j);
    for (long round = 0; round < rounds; ++round) {
        for (long j = 0; j < n; ++j)
            c[j] = a[j];
        for (long j = 0; j < n; ++j)
            b[j] = scalar * c[j];
        for (long j = 0; j < n; ++j)
            c[j] = a[j] + b[j];
        for (long j = 0; j < n; ++j)
            a[j] = b[j] + scalar * c[j];
    }
    double sum = 0.0;
    for (long j = 0; j < n; ++j)
        sum += a[j] + 2 * b[j] + 3 * c[j];
    printf("stream %ld %ld: %.17g\n", n, rounds, sum);
    return 0;
}
