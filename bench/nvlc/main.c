/* PROGRAM HEAP SIZE: makes a heap, sets the kernel up, and runs it once for each number that it
 * reads. It tells of each row, in a line: name, nanoseconds that have passed, and those of the
 * processor, fences, lines written back or stored past the cache, syncs, bytes written, answer. */
#include "kernel.h"

#include <stdlib.h>
#include <time.h>

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    char line[64];
    if (argc != 3)
        return 2;
    nvl_heap_t *heap = nvl_create(argv[1]);
    if (!heap) {
        fprintf(stderr, "%s: cannot make %s\n", argv[0], argv[1]);
        return 1;
    }
    set_up(heap, argument(argc, argv, 2, 0));
    while (fgets(line, sizeof line, stdin)) {
        long work = strtol(line, NULL, 10);
        reset();
        for (int row = 0; rows[row]; ++row) {
            struct nvl_counters before, after;
            nvl_counters(&before);
            double cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
            run(heap, row, work);
            wall = now(CLOCK_MONOTONIC) - wall;
            cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
            nvl_counters(&after);
            printf("%s %.0f %.0f %llu %llu %llu %llu %.17g\n", rows[row], wall, cpu,
                   after.fences - before.fences,
                   after.write_backs - before.write_backs + after.streamed_lines -
                       before.streamed_lines,
                   after.syncs - before.syncs, after.bytes_written - before.bytes_written,
                   answer(row));
        }
        fflush(stdout);
    }
    return 0;
}
