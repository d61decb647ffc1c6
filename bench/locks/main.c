/* PROGRAM HEAP SIZE: sets the kernel up, and runs its rows once for each number that it reads: so
 * many operations. It tells of each row, in a line: name, nanoseconds that have passed, and those
 * of the processor by all threads, fences, lines written back, syncs (none), bytes written, answer.
 */
#include "kernel.h"

#include <time.h>

#define THREADS_MAX 8

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* A thread of a row, and what it took. */
struct worker {
    int row, thread, threads;
    long operations;
    pthread_barrier_t *barrier;
    double begin, end, cpu;
    struct counts counts;
};

static void *work(void *argument) {
    struct worker *self = argument;
    struct counts before;
    pthread_barrier_wait(self->barrier);
    memory_counts(&before);
    double cpu = now(CLOCK_THREAD_CPUTIME_ID);
    self->begin = now(CLOCK_MONOTONIC);
    run(self->row, self->thread, self->threads, self->operations);
    self->end = now(CLOCK_MONOTONIC);
    self->cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    memory_counts(&self->counts);
    self->counts.fences -= before.fences;
    self->counts.write_backs -= before.write_backs;
    self->counts.bytes -= before.bytes;
    return NULL;
}

static void run_row(int row, long operations) {
    struct worker workers[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    pthread_barrier_t barrier;
    int count = rows[row].threads;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        workers[i] =
            (struct worker){row, i, count, operations / count, &barrier, 0, 0, 0, {0, 0, 0}};
        /* A row of one thread is run by this one, which has all in its caches. */
        if (i > 0 && pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            abort();
    }
    work(&workers[0]);
    double begin = workers[0].begin, end = workers[0].end, cpu = workers[0].cpu;
    struct counts all = workers[0].counts;
    for (int i = 1; i < count; i++) {
        struct worker *one = &workers[i];
        pthread_join(threads[i], NULL);
        begin = one->begin < begin ? one->begin : begin;
        end = one->end > end ? one->end : end;
        cpu += one->cpu;
        all.fences += one->counts.fences;
        all.write_backs += one->counts.write_backs;
        all.bytes += one->counts.bytes;
    }
    pthread_barrier_destroy(&barrier);
    printf("%s %.0f %.0f %llu %llu 0 %llu %llu\n", rows[row].name, end - begin, cpu, all.fences,
           all.write_backs, all.bytes, (unsigned long long)answer(row));
}

int main(int argc, char **argv) {
    char line[64];
    if (argc != 3)
        return 2;
    memory_open(argv[1]);
    const char *fence = getenv("BENCH_FENCE_NS");
    if (fence)
        memory_delay(strtoul(fence, NULL, 10));
    set_up(strtol(argv[2], NULL, 10));
    while (fgets(line, sizeof line, stdin)) {
        long operations = strtol(line, NULL, 10);
        for (int row = 0; rows[row].name; row++) {
            prepare(row);
            run_row(row, operations);
        }
        fflush(stdout);
    }
    return 0;
}
