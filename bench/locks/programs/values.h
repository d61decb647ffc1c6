/* Keys of 16 bytes with values of 8, and which operation comes next: the same for all sides. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEYS = 10000, KEY_SIZE = 16, VALUE_SIZE = 8 };

/* How often each key was set. */
static uint32_t versions[KEYS];
static uint64_t drawn = 1;

static inline uint64_t draw(void) {
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return drawn >> 33;
}

static inline void write_key(uint64_t key, char text[KEY_SIZE + 1]) {
    snprintf(text, KEY_SIZE + 1, "key%013llu", (unsigned long long)key);
}

static inline void write_value(uint64_t key, char text[VALUE_SIZE + 1]) {
    snprintf(text, VALUE_SIZE + 1, "%08x", (unsigned)(key * 2654435761u + versions[key]));
}

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

_Noreturn static inline void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* So many operations of which so many of 100 are sets; nanoseconds of one. */
static inline double run(long operations, unsigned sets, void (*set)(uint64_t),
                         void (*get)(uint64_t)) {
    double begin = now();
    for (long i = 0; i < operations; i++) {
        uint64_t key = draw() % KEYS;
        draw() % 100 < sets ? set(key) : get(key);
    }
    return (now() - begin) / (double)operations;
}
