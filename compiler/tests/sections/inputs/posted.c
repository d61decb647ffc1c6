/* A place that is filled under one lock and emptied under another one: numbers say whose it is. Each is stored behind a
 * record of its own, as what is stored with it is stored again by who goes on: a load in front, which is done once. */
#include "simulated.h"

#include <stdatomic.h>

struct root {
    pthread_mutex_t filling, emptying;
    _Alignas(64) uint64_t value;
    _Alignas(64) _Atomic uint64_t filled;
    _Alignas(64) _Atomic uint64_t emptied;
    uint64_t sum;
};

const int operations = 48;
const int threads = 2;

__attribute__((noinline)) static void fill(struct root *root) {
    pthread_mutex_lock(&root->filling);
    uint64_t number = atomic_load(&root->filled);
    if (atomic_load(&root->emptied) == number) {
        root->value = number + 1;
        (void)atomic_load(&root->emptied);
        atomic_store(&root->filled, number + 1);
    }
    pthread_mutex_unlock(&root->filling);
}

__attribute__((noinline)) static void empty(struct root *root) {
    pthread_mutex_lock(&root->emptying);
    uint64_t number = atomic_load(&root->emptied);
    if (atomic_load(&root->filled) != number) {
        root->sum += root->value;
        root->value = 0;
        (void)atomic_load(&root->filled);
        atomic_store(&root->emptied, number + 1);
    }
    pthread_mutex_unlock(&root->emptying);
}

void init(struct root *root) { root->sum = 0; }

void operate(struct root *root, int number) { number % 2 ? empty(root) : fill(root); }

/* What was filled was emptied, once each. */
const char *examine(const struct root *root, const int *is_done) {
    (void)is_done;
    uint64_t is_full = root->filled - root->emptied;
    if (is_full > 1 || root->sum != root->emptied * (root->emptied + 1) / 2)
        return "something else was emptied";
    return root->value == (is_full ? root->filled : 0) ? NULL : "what was emptied is there again";
}

uint64_t digest(const struct root *root) { return root->filled; }
