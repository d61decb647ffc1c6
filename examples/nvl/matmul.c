/* a = b * c, dense, row by row. `matmul [ORDER]` */
#include "run.h"

int main(int argc, char **argv) {
    long n = argument(argc, argv, 1, 256);
    float *a = calloc((size_t)(n * n), sizeof *a);
    float *b = calloc((size_t)(n * n), sizeof *b);
    float *c = calloc((size_t)(n * n), sizeof *c);
    if (!a || !b || !c)
        return 1;
    for (long at = 0; at < n * n; ++at) {
        b[at] = (float)fraction_at((uint64_t)at);
        c[at] = (float)fraction_at((uint64_t)(n * n + at));
    }
    for (long i = 0; i < n; ++i)
        for (long j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (long k = 0; k < n; ++k)
                sum += b[i * n + k] * c[k * n + j];
            a[i * n + j] = sum;
        }
    double sum = 0.0;
    for (long at = 0; at < n * n; ++at)
        sum += (double)a[at] * (double)(at % 7 + 1);
    printf("matmul %ld: %.17g\n", n, sum);
    return 0;
}
