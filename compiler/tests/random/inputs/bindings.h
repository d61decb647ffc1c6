// What a random program is written with: its text means two programs.
//
//   PLAIN             data in ordinary memory, compiled by any compiler
//   TRANSACTIONS=0    data in a heap, no transaction
//   TRANSACTIONS=1    what a step changes of old data is a transaction, together with its number
//   TRANSACTIONS=2    each step is one, and the transactions in it are parts of it
#ifndef BINDINGS_H
#define BINDINGS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PLAIN
#define NVL
#define WEAK
#define ALLOC(n, type) ((__typeof__(type) *)calloc((n), sizeof(type)))
#define OPEN(path) ((void)(path))
#define ROOT(type) ((type *)NULL)
#define SET_ROOT(root) ((void)(root))
#define COLLECT() ((void)0)
#define CLOSE() ((void)0)
#else
#include <durum.h>
#include <nvl.h>
#define NVL nvl
#define WEAK nvl_wp
static nvl_heap_t *heap;
#define ALLOC(n, type) nvl_alloc_nv(heap, n, type)
#define OPEN(path) open_heap(path)
#define ROOT(type) nvl_get_root(heap, type)
#define SET_ROOT(root) nvl_set_root(heap, root)
#define COLLECT() ((void)nvl_collect(heap))
#define CLOSE() nvl_close(heap)

static inline void open_heap(const char *path) {
    heap = nvl_open(path);
    if (!heap && errno == ENOENT)
        heap = nvl_create(path);
    if (!heap) {
        fprintf(stderr, "%s: %s\n", path, durum_errormsg());
        exit(2);
    }
}
#endif

// The clauses belong to the program: they stand behind the heap.
#define TEXT(...) #__VA_ARGS__
#if defined PLAIN || TRANSACTIONS == 0
#define ATOMIC(...)
#define STEP
#else
#define ATOMIC(...) _Pragma(TEXT(nvl atomic heap(heap) __VA_ARGS__))
#if TRANSACTIONS == 2
#define STEP ATOMIC()
#else
#define STEP
#endif
#endif

// Checksums. Doubles are neither infinite nor NaN, whose bits are the compiler's choice.
static inline uint64_t mix(uint64_t sum, uint64_t value) {
    sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
    return sum ^ (sum >> 29);
}
static inline uint64_t mix_real(uint64_t sum, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return mix(sum, bits);
}

// Arithmetic that is defined for all values; sums, products and shifts are made of unsigned numbers
// where they stand.
static inline int32_t quotient32(int32_t a, int32_t b) {
    return b == 0 || (a == INT32_MIN && b == -1) ? a : a / b;
}
static inline int32_t rest32(int32_t a, int32_t b) {
    return b == 0 || (a == INT32_MIN && b == -1) ? 0 : a % b;
}
static inline int64_t quotient64(int64_t a, int64_t b) {
    return b == 0 || (a == INT64_MIN && b == -1) ? a : a / b;
}
static inline uint64_t rest64(uint64_t a, uint64_t b) { return b == 0 ? a : a % b; }
// Doubles stay near 0, so that they can be made integers and never overflow.
static inline double fold(double x) { return x > 1e6 || x < -1e6 ? x * 0x1p-24 : x; }
static inline double real_of(int64_t x) { return (double)(x % 1000003); }
static inline int32_t integer_of(double x) { return (int32_t)fold(x); }

#endif
