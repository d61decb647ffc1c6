/* A kernel is one text for all sides: what threads do to data that are shared, under locks. A side
 * gives it a memory.h of its own, which says what a store, a section and an allocation are there.
 * For plain C and for code that durumcc completes they are what the language has. main.c runs it,
 * with some threads; all sides give the same answers. */
#ifndef KERNEL_H
#define KERNEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What has been done by this thread to make data durable. */
struct counts {
    unsigned long long fences, write_backs, bytes;
};

/* Where the data are: a path that does not exist yet, or an empty one for malloc's memory. Ends the
 * program on failure. */
void memory_open(const char *path);
/* So many zeros, in the way in which the side finds its root. Once. */
void *memory_root(size_t size);
void memory_counts(struct counts *counts);
/* Each fence takes so many nanoseconds more from now on. */
void memory_delay(unsigned long fence_ns);

/* What a side defines:
 *
 *     BEGIN(lock)               begins what is durable as a whole; the lock is held already
 *     COMMIT()                  ends it, before any lock is let go that was held at its begin
 *     SET(place, value)         stores a value in what is durable, between the two
 *     SET_RELEASE(place, value) the same, of an atomic that others read without this lock
 *     INIT(place, value)        the same, in what has been allocated since the begin
 *     FILL(start, byte, size)   memset
 *     NEW(type)                 allocates, between the two; never NULL
 *     DROP(object)              frees what nothing leads to any more, between the two
 */
#include "memory.h"

/* The rows in order, with one of no name behind them. */
struct row {
    const char *name;
    int threads;
};
extern const struct row rows[];

/* Once, before all else. */
void set_up(long size);
/* Before a row, by the first of its threads. */
void prepare(int row);
/* A thread's part of a row, of which it is the one with this number: so many operations. */
void run(int row, int thread, int threads, long operations);
/* What the row has left, the same on all sides. */
uint64_t answer(int row);

/* SplitMix64: the same number for the same index. */
static inline uint64_t random_at(uint64_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
