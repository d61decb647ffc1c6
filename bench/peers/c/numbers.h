/* What a map from numbers to numbers has to do. numbers.c has the transactions and batches of all.
 */
#ifndef DURUM_BENCH_NUMBERS_H
#define DURUM_BENCH_NUMBERS_H

#include <stdbool.h>

#include "pool.h"

struct numbers_walk;

/* A map; `root` is its root object, zeroed at first. What changes it runs in a transaction. */
struct numbers_map {
    size_t root_size;
    void (*insert)(void *root, uint64_t key, uint64_t value);
    bool (*remove)(void *root, uint64_t key);
    /* The value, or null. */
    const uint64_t *(*find)(const void *root, uint64_t key);
    void (*walk)(const void *root, struct numbers_walk *walk);
};

extern const struct numbers_map numbers_bst;
extern const struct numbers_map numbers_hash;
extern const struct numbers_map numbers_bplus;
extern const struct numbers_map numbers_sorted;
extern const struct numbers_map numbers_redblack;
extern const struct numbers_map numbers_fixed;

/* A walk over a map calls this for each entry. */
void numbers_visit(struct numbers_walk *walk, uint64_t key, uint64_t value);
/* And this, if a rule of the structure other than the order of its keys is broken. */
void numbers_unsound(struct numbers_walk *walk);

#endif
