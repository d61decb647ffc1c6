/* The runtime of compiled sections over simulated memory. */
#pragma once
#include "simulated.h"

enum { LINE = 64, THREADS_MAX = 8, LOCKS_MAX = 8, WORDS_MAX = 128, STACK = 16 * 1024 };

/* What lasts of a thread. */
struct bank {
    uint64_t checksum, sequence, code;
    uint32_t stack, frame, locks, words;
    uint64_t lock[LOCKS_MAX];
    uint64_t word[WORDS_MAX];
};
struct frame {
    uint64_t code;
    uint32_t before, words;
    uint64_t word[];
};
struct slot {
    _Alignas(LINE) struct bank banks[2];
    _Alignas(LINE) char stack[STACK];
};
struct memory {
    _Alignas(LINE) char pool[POOL_SIZE];
    _Alignas(LINE) uint64_t taken;
    _Alignas(LINE) char heap[POOL_SIZE];
    _Alignas(LINE) char globals[4096];
    struct slot slots[THREADS_MAX];
};

/* What programs see, and what would be there after a power cut. */
static struct memory *const memory = (struct memory *)BASE;
extern struct memory *image;

/* What is left out, that a test has to notice. */
extern const char *fault;

/* That were passed. */
extern long fences;

/* Something may crash here. */
void event(void);
_Noreturn void fail(const char *what);

/* In new memory: gives global variables that last their values. */
void make_globals(void);

/* After a crash: completes the sections that it has interrupted. */
void complete(void);
