// Stands between a program and the runtime (LD_PRELOAD): counts the calls of a run, and ends or
// spoils it at one of them.
//
//   RANDOMC_COUNT=FILE      writes the numbers of calls to the file when the program ends
//   RANDOMC_KILL=all:N:US   kills the process US microseconds after call N has begun; at once with 0
//   RANDOMC_KILL=NAME:N:US  the same, when __nvl_NAME is called for the Nth time
//   RANDOMC_KILL=close      kills it when it closes its heap
//   RANDOMC_DROP=NAME:N     leaves out every Nth call of __nvl_NAME, log or persist, as a compiler
//                           would that has forgotten it
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned long calls, ends, kill_at, kill_calls, drop_every, drops;
static long kill_after_us;
static int kills_at_close;
static char dropped[16], killed[16];

static void die(void) {
    kill(getpid(), SIGKILL);
    pause();
}

static void die_soon(void) {
    if (kill_after_us == 0)
        die();
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec moment = {.it_value = {0, kill_after_us * 1000}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &moment, NULL))
        abort();
}

static void tell(void) {
    FILE *file = fopen(getenv("RANDOMC_COUNT"), "w");
    if (!file || fprintf(file, "all %lu\ntx_end %lu\n", calls, ends) < 0 || fclose(file))
        abort();
}

__attribute__((constructor)) static void read_environment(void) {
    const char *text = getenv("RANDOMC_KILL");
    if (text && strcmp(text, "close") == 0)
        kills_at_close = 1;
    else if (text && sscanf(text, "%15[a-z_]:%lu:%ld", killed, &kill_at, &kill_after_us) != 3)
        abort();
    text = getenv("RANDOMC_DROP");
    if (text && sscanf(text, "%15[a-z]:%lu", dropped, &drop_every) != 2)
        abort();
    if (getenv("RANDOMC_COUNT"))
        atexit(tell);
}

// Whether the call is to be made.
static int counts(const char *name) {
    calls++;
    ends += strcmp(name, "tx_end") == 0;
    if (kill_at && (strcmp(killed, "all") == 0 || strcmp(killed, name) == 0) && ++kill_calls == kill_at)
        die_soon();
    return !drop_every || strcmp(name, dropped) != 0 || ++drops % drop_every != 0;
}

// The function of the runtime, and the same one with file and line.
#define FUNCTION(name, result, parameters, ...)                                                    \
    result __nvl_##name parameters;                                                                \
    result __nvl_##name parameters {                                                               \
        static result(*next) parameters;                                                           \
        if (!next)                                                                                 \
            next = (result(*) parameters)dlsym(RTLD_NEXT, "__nvl_" #name);                         \
        if (!counts(#name))                                                                        \
            return (result)0;                                                                      \
        return next(__VA_ARGS__);                                                                  \
    }
#define PLACED(name, result, parameters, placed, ...)                                              \
    FUNCTION(name, result, parameters, __VA_ARGS__)                                                \
    result __nvl_##name##_at placed;                                                               \
    result __nvl_##name##_at placed {                                                              \
        static result(*next) placed;                                                               \
        if (!next)                                                                                 \
            next = (result(*) placed)dlsym(RTLD_NEXT, "__nvl_" #name "_at");                       \
        if (!counts(#name))                                                                        \
            return (result)0;                                                                      \
        return next(__VA_ARGS__, file, line);                                                      \
    }
#define P void *
#define PLACE const char *file, unsigned line
PLACED(alloc, P, (P a, size_t n, size_t s, P d), (P a, size_t n, size_t s, P d, PLACE), a, n, s, d)
PLACED(alloc_pinned, P, (P a, size_t n, size_t s, P d), (P a, size_t n, size_t s, P d, PLACE), a, n,
       s, d)
PLACED(set_root, long, (P a, P b, P c), (P a, P b, P c, PLACE), a, b, c)
PLACED(store_ptr, long, (P a, P b), (P a, P b, PLACE), a, b)
PLACED(store_weak, long, (P a, P b), (P a, P b, PLACE), a, b)
PLACED(load_weak, P, (P a), (P a, PLACE), a)
PLACED(copy, long, (P a, P b, size_t n), (P a, P b, size_t n, PLACE), a, b, n)
PLACED(fill, long, (P a, int b, size_t n), (P a, int b, size_t n, PLACE), a, b, n)
PLACED(write_back, long, (P a, size_t n), (P a, size_t n, PLACE), a, n)
PLACED(persist, long, (P a, size_t n), (P a, size_t n, PLACE), a, n)
PLACED(log, long, (P a, size_t n), (P a, size_t n, PLACE), a, n)
PLACED(tx_begin, long, (P a, int b, int c, P d), (P a, int b, int c, P d, PLACE), a, b, c, d)
PLACED(tx_range, long, (P a, int b, P c, long long d, size_t e),
       (P a, int b, P c, long long d, size_t e, PLACE), a, b, c, d, e)
PLACED(tx_end, long, (P a), (P a, PLACE), a)

// A program that is linked as a whole (-flto) tells no places.
void nvl_close(P heap);
void nvl_close(P heap) {
    if (kills_at_close)
        die();
    ((void (*)(P))dlsym(RTLD_NEXT, "nvl_close"))(heap);
}

void nvl_close_at(P heap, PLACE);
void nvl_close_at(P heap, PLACE) {
    if (kills_at_close)
        die();
    ((void (*)(P, PLACE))dlsym(RTLD_NEXT, "nvl_close_at"))(heap, file, line);
}
