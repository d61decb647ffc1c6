/* Crashes a program at its events, with some of the lines that were not durable, torn at words, and looks at what is there
 * when its sections are completed.
 *
 *   program digests IMAGE                       what is there after each operation, one a line
 *   program fences IMAGE                        how many fences each operation has
 *   program sweep DIGESTS IMAGE STRIDE SEEDS    crashes it at every STRIDEth event, so many times with different lines,
 *                                               and completes what it left; DIGESTS are those of the plain program
 *
 * FAULT in the environment leaves out something.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CRASHED = 42, OPERATIONS_MAX = 256 };
/* A section that was resumed in the wrong place may never end. */
enum { SECONDS_MAX = 2, FAILURES_MAX = 5 };

struct memory *image;
const char *fault = "";
/* Then they have to meet. */
static int is_parallel;
static long event_to_crash = -1;
static long events;
static uint64_t random_state;

void fail(const char *what) {
    fprintf(stderr, "the runtime: %s\n", what);
    exit(3);
}

static uint64_t draw(void) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1dull;
}

/* Of each line that is not durable, nothing, all, or some words. */
static void crash(void) {
    for (size_t line = 0; line < sizeof *memory; line += LINE) {
        uint64_t *from = (uint64_t *)((char *)memory + line), *to = (uint64_t *)((char *)image + line);
        if (memcmp(from, to, LINE) == 0)
            continue;
        uint64_t how = draw() % 4;
        for (int i = 0; i < LINE / 8; i++)
            if (how == 0 || (how != 1 && draw() % 2))
                to[i] = from[i];
    }
    _exit(CRASHED);
}

void event(void) {
    if (is_parallel && draw() % 4 == 0)
        sched_yield();
    if (__atomic_fetch_add(&events, 1, __ATOMIC_RELAXED) == event_to_crash)
        crash();
}

static void map(const char *path, int is_new) {
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || (is_new && (ftruncate(file, 0) || ftruncate(file, sizeof *memory))))
        fail(path);
    image = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *there = mmap((void *)BASE, sizeof *memory, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (image == MAP_FAILED || there != (void *)BASE)
        fail("no memory");
    memcpy(memory, image, sizeof *memory);
    if (is_new)
        make_globals();
    close(file);
}

/* Of the run that crashes: how many operations have been begun, by one thread, and which have ended. */
static struct progress {
    int begun;
    int is_done[OPERATIONS_MAX];
} *progress;

static void *work(void *first) {
    int step = &threads ? threads : 1;
    for (int i = (int)(intptr_t)first; i < operations; i += step) {
        progress->begun = i;
        operate((struct root *)BASE, i);
        progress->is_done[i] = 1;
    }
    return NULL;
}

static void run(void) {
    init((struct root *)BASE);
    memcpy(image, memory, sizeof *memory);
    if (!&threads) {
        work(NULL);
    } else {
        pthread_t running[THREADS_MAX];
        is_parallel = 1;
        for (int i = 0; i < threads; i++)
            pthread_create(&running[i], NULL, work, (void *)(intptr_t)i);
        for (int i = 0; i < threads; i++)
            pthread_join(running[i], NULL);
    }
    progress->begun = operations;
}

static int status_of(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In a new process, whose code is at other addresses. */
static int resume(const char *program, const char *digests, const char *path, long event, uint64_t seed) {
    char event_text[32], seed_text[32];
    snprintf(event_text, sizeof event_text, "%ld", event);
    snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    pid_t child = vfork();
    if (child == 0) {
        execl(program, program, "resume", digests, path, event_text, seed_text, NULL);
        _exit(4);
    }
    return status_of(child);
}

static void read_digests(const char *path, uint64_t *expected) {
    FILE *file = fopen(path, "r");
    int count = 0;
    while (file && count <= operations && fscanf(file, "%lx", &expected[count]) == 1)
        count++;
    if (count != operations + 1)
        fail("there is no digest for each operation");
    fclose(file);
}

static void map_progress(const char *image_path) {
    char path[256];
    snprintf(path, sizeof path, "%s.progress", image_path);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *progress))
        fail(path);
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
}

/* What is there is what was there before or after an operation that was begun. */
static const char *wrong_after(const uint64_t *expected) {
    if (&known_objects && known_objects((struct root *)BASE) != blocks_taken())
        return "something is taken that nothing leads to, or the other way round";
    if (&threads)
        return examine((struct root *)BASE, progress->is_done);
    uint64_t found = digest((struct root *)BASE);
    int begun = progress->begun;
    int is_right = found == expected[begun] || (begun < operations && found == expected[begun + 1]);
    return is_right ? NULL : "something else is there";
}

static int sweep(const char *program, const char *digests, const char *path, long stride, int seeds) {
    map_progress(path);
    long crashes = 0, nested = 0, failures = 0;
    for (long at = 0;; at += stride) {
        int status = 0;
        for (int seed = 1; seed <= seeds; seed++) {
            fflush(stdout);
            memset(progress, 0, sizeof *progress);
            random_state = (at + 1) * 0x9e3779b97f4a7c15ull ^ (uint64_t)seed << 32;
            pid_t child = fork();
            if (child == 0) {
                alarm(SECONDS_MAX);
                event_to_crash = at;
                map(path, 1);
                run();
                _exit(0);
            }
            status = status_of(child);
            if (status != CRASHED)
                break;
            crashes++;
            int tries = 0, again;
            do {
                /* The last one is not disturbed. */
                long next = tries < 3 ? (long)(draw() % 24) : -1;
                again = resume(program, digests, path, next, draw());
                nested += again == CRASHED;
            } while (again == CRASHED && tries++ < 3);
            if (again) {
                failures++;
                printf("event %ld, seed %d, operation %d: status %d\n", at, seed, progress->begun, again);
            }
        }
        /* Enough to know. */
        if (status == 0 || failures >= FAILURES_MAX)
            break;
        if (status != CRASHED) {
            printf("event %ld: the program has failed (status %d)\n", at, status);
            failures++;
            break;
        }
    }
    printf("%ld crashes, %ld in recovery, %ld failures\n", crashes, nested, failures);
    return failures != 0;
}

int main(int argc, char **argv) {
    if (getenv("FAULT"))
        fault = getenv("FAULT");
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "sweep") && argc == 6)
        return sweep(argv[0], argv[2], argv[3], atol(argv[4]), atoi(argv[5]));
    if (!strcmp(what, "fences") && argc == 3) {
        map(argv[2], 1);
        init((struct root *)BASE);
        for (int i = 0; i < operations; i++) {
            long before = fences;
            operate((struct root *)BASE, i);
            printf("%ld\n", fences - before);
        }
        return 0;
    }
    if (!strcmp(what, "digests") && argc == 3) {
        map(argv[2], 1);
        init((struct root *)BASE);
        for (int i = 0; i < operations; i++) {
            printf("%016lx\n", digest((struct root *)BASE));
            operate((struct root *)BASE, i);
        }
        printf("%016lx\n", digest((struct root *)BASE));
        return 0;
    }
    if (!strcmp(what, "resume") && argc == 6) {
        uint64_t expected[OPERATIONS_MAX + 1];
        read_digests(argv[2], expected);
        map_progress(argv[3]);
        alarm(SECONDS_MAX);
        event_to_crash = atol(argv[4]);
        random_state = strtoull(argv[5], NULL, 10) | 1;
        is_parallel = &threads != NULL;
        map(argv[3], 0);
        complete();
        const char *wrong = wrong_after(expected);
        if (wrong)
            fail(wrong);
        return 0;
    }
    fprintf(stderr, "%s digests IMAGE | fences IMAGE | sweep DIGESTS IMAGE STRIDE SEEDS\n", argv[0]);
    return 2;
}
