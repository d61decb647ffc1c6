/* Eight threads that are in sections nearly all of the time, and a heap with few objects beside
 * theirs.
 *
 *   program HEAP work MIB     works until it is killed
 *   program HEAP              opens it, which completes the sections; tells how many nanoseconds
 */
#include <nv.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 8, WORDS = 4096, LARGE = 16 << 20 };

struct account {
    pthread_mutex_t lock;
    uint64_t words[WORDS];
};
struct root {
    struct account accounts[THREADS];
    void *large[64];
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *work(void *argument) {
    struct account *account = argument;
    for (;;) {
        pthread_mutex_lock(&account->lock);
        for (int i = 0; i < WORDS; i++)
            account->words[i]++;
        pthread_mutex_unlock(&account->lock);
    }
}

static int check(const struct root *root) {
    for (int thread = 0; thread < THREADS; thread++)
        for (int i = 0; i < WORDS; i++)
            if (root->accounts[thread].words[i] != root->accounts[thread].words[0])
                return fprintf(stderr, "a section is half done\n"), 1;
    return 0;
}

int main(int argc, char **argv) {
    double begin = now();
    if (argc < 2 || nv_open(argv[1]))
        return fprintf(stderr, "%s\n", nv_error()), 2;
    double end = now();
    struct root *root = nv_root(sizeof *root);
    if (argc < 4) {
        printf("%.0f\n", end - begin);
        return check(root);
    }
    for (int i = 0; i < atoi(argv[3]) / (LARGE >> 20); i++)
        if (!root->large[i] && !(root->large[i] = nv_calloc(1, LARGE)))
            return 2;
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, work, &root->accounts[i]))
            return 2;
    puts("works");
    fflush(stdout);
    return pthread_join(thread, NULL);
}
