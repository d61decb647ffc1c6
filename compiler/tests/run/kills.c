// The matrix multiply of the paper, Figure 4, as its text describes it: killed again and again, it goes on where it was
// and computes what it would have without.
// RUN: %levels %s
// RUN: %served %s
#include <time.h>
#include "inputs/test.h"

enum { I = 64, J = 32, K = 40, N = 2 };
struct problem {
    nvl float *a, *b, *c;
    int i;
};

__attribute__((noinline)) static void matmul(nvl_heap_t *heap, nvl float a[I][J], nvl float b[I][K], nvl float c[K][J],
                                             nvl int *i) {
    while (*i < I) {
#pragma nvl atomic heap(heap) clobber(a[*i:N])
        for (int ii = 0; ii < N; ++ii, ++*i) {
            for (int j = 0; j < J; ++j) {
                float sum = 0.0;
                for (int k = 0; k < K; ++k)
                    sum += b[*i][k] * c[k][j];
                a[*i][j] = sum;
            }
        }
        usleep(200);
    }
}

typedef nvl float (*rows_of_j)[J];
typedef nvl float (*rows_of_k)[K];
static void work(nvl_heap_t *heap) {
    nvl struct problem *p = nvl_get_root(heap, struct problem);
    matmul(heap, (rows_of_j)p->a, (rows_of_k)p->b, (rows_of_j)p->c, &p->i);
    exit(0);
}

static void set_up(void) {
    nvl_heap_t *heap = nvl_create(heap_named("heap"));
    nvl struct problem *p = nvl_alloc_nv(heap, 1, struct problem);
    nvl_set_root(heap, p);
    p->a = nvl_alloc_nv(heap, I * J, float);
    p->b = nvl_alloc_nv(heap, I * K, float);
    p->c = nvl_alloc_nv(heap, K * J, float);
    for (int n = 0; n < I * K; n++)
        p->b[n] = (float)(n % 17);
    for (int n = 0; n < K * J; n++)
        p->c[n] = (float)(n % 13);
    nvl_close(heap);
}
static void check(void) {
    nvl_heap_t *heap = nvl_open(heap_named("heap"));
    nvl struct problem *p = nvl_get_root(heap, struct problem);
    CHECK(p->i == I);
    for (int i = 0; i < I; i++)
        for (int j = 0; j < J; j++) {
            float sum = 0.0;
            for (int k = 0; k < K; ++k)
                sum += (float)((i * K + k) % 17) * (float)((k * J + j) % 13);
            CHECK(p->a[i * J + j] == sum);
        }
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    srand(1);
    int kills = 0, status = SIGKILL;
    while (!WIFEXITED(status)) {
        pid_t child = fork();
        if (child == 0) {
            nvl_heap_t *heap = nvl_open(heap_named("heap"));
            CHECK(heap != NULL);
            work(heap);
        }
        struct timespec a_moment = {0, 2000000 + rand() % 4000000};
        if (kills < 50) {
            nanosleep(&a_moment, NULL);
            kill(child, SIGKILL);
        }
        waitpid(child, &status, 0);
        kills += status != 0;
    }
    CHECK(WIFEXITED(status) && kills > 0);
    done(check);
    return 0;
}
