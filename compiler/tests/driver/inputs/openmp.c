/* Constructs of OpenMP whose code calls its library, without NVM. */
#include <stdio.h>
#include <stdlib.h>
extern void use(int *);
int total;
#pragma omp threadprivate(total)
double sum(double *a, int n) {
    double s = 0;
#pragma omp parallel for reduction(+ : s) schedule(dynamic, 3)
    for (int i = 0; i < n; i++)
        s += a[i];
#pragma omp parallel
    {
#pragma omp single copyprivate(total)
        total = 1;
#pragma omp barrier
#pragma omp critical(name)
        total += n;
#pragma omp for ordered nowait
        for (int i = 0; i < n; i++) {
#pragma omp ordered
            use(&n);
        }
#pragma omp sections
        {
#pragma omp section
            use(&n);
#pragma omp section
            use(&total);
        }
#pragma omp task depend(inout : n) firstprivate(s)
        use(&n);
#pragma omp taskwait
#pragma omp taskgroup
        {
#pragma omp taskloop
            for (int i = 0; i < n; i++)
                use(&i);
        }
#pragma omp atomic
        s += 1;
#pragma omp cancel parallel if (n > 3)
#pragma omp master
        puts("x");
    }
#pragma omp simd
    for (int i = 0; i < n; i++)
        a[i] *= 2;
#pragma omp target map(tofrom : s)
    s += 1;
#pragma omp target teams distribute parallel for map(tofrom : a[0 : n])
    for (int i = 0; i < n; i++)
        a[i] += 2;
#pragma omp error at(execution) severity(warning) message("told")
    return s;
}
static int helper(int x) {
#pragma omp parallel num_threads(x)
    use(&x);
    return x;
}
int main(int argc, char **argv) {
    printf("%d\n", helper(argc));
    return 0;
}
