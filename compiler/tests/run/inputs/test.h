/* What the programs of this directory share. */
#ifndef TEST_H
#define TEST_H

#include <nvl.h>
#include <durum.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(...)                                                                                 \
    ((__VA_ARGS__) ? (void)0                                                                       \
                   : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__),    \
                      fflush(stderr), _exit(1)))

/* The heap `name` in this directory or, where a service is there, of its store. */
static inline const char *heap_named(const char *name) {
    static char path[200];
    const char *service = getenv("SERVICE");
    snprintf(path, sizeof path, "%s%s%s", service ? service : "", service ? ":" : "", name);
    return path;
}

/* A process that opens the heap "heap", works on it, and dies without closing it. What the heap has
 * then is what was durable: programs work in pages of their own. */
static inline int in_process(void (*work)(nvl_heap_t *heap)) {
    pid_t child = fork();
    if (child == 0) {
        nvl_heap_t *heap = nvl_open("heap");
        CHECK(heap != NULL);
        work(heap);
        kill(getpid(), SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}
/* A process that does something and ends. The library belongs to the process that has used it, so
 * main only starts others. */
static inline void done(void (*work)(void)) {
    pid_t child = fork();
    if (child == 0) {
        work();
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK(status == 0);
}
static inline void killed(void (*work)(nvl_heap_t *heap)) {
    int status = in_process(work);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static inline unsigned long fences(void) {
    struct durum_stats stats;
    CHECK(durum_thread_stats(&stats) == 0);
    return stats.fences;
}

#endif
