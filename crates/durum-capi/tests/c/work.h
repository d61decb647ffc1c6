/* What tests of updates and reads have in common: two numbers that are changed together. */
#ifndef DURUM_TESTS_WORK_H
#define DURUM_TESTS_WORK_H

#include "check.h"

/* What the functions below work on. */
typedef struct work {
    durum_pool *pool;
    cell *root;
    uint64_t value;
    int returns;
} work;

static inline work on(fixture *f) {
    work w = {f->pool, DURUM_ROOT(f->pool, cell), 0, 0};
    CHECK(w.root != NULL);
    return w;
}

static inline int add_to_both(void *arg) {
    work *w = (work *)arg;
    CHECK(durum_tx_level() > 0);
    CHECK_CODE(durum_tx_add(&w->root->value, 2 * sizeof(uint64_t)), DURUM_OK);
    w->root->value += w->value;
    w->root->other += w->value;
    return w->returns;
}

static inline int look(void *arg) {
    work *w = (work *)arg;
    CHECK(w->root->value == w->root->other);
    w->value = w->root->value;
    return w->returns;
}

#endif
