/* a = b * c, dense, row by row. `matmul [ORDER]` */
#define nvl /* In plain memory it means nothing. */
#include "matmul.h"

int main(int argc, char **argv) {
    long n = argument(argc, argv, 1, 256);
    float *a = calloc((size_t)(n * n), sizeof *a);
    float *b = calloc((size_t)(n * n), sizeof *b);
    float *c = calloc((size_t)(n * n), sizeof *c);
    if (!a || !b || !c)
        return 1;
    fill(b, c, n);
    multiply_rows(a, b, c, n, 0, n);
    printf("matmul %ld: %.17g\n", n, sum_of(a, n));
    return 0;
}
