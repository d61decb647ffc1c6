/* A queue with a lock for each end: who takes reads what who puts has stored under another lock, and frees where that one
 * may store again, if it goes on after a crash. And a number that grows
 * under one lock and is followed under another one. */
#include "simulated.h"

#include <stdatomic.h>

struct node {
    _Atomic(struct node *) next;
    uint64_t value;
};
struct root {
    pthread_mutex_t first_lock, last_lock, growing, following;
    struct node *first, *last;
    struct node empty;
    _Alignas(64) uint64_t taken[64];
    uint64_t taken_count;
    _Alignas(64) _Atomic uint64_t grown;
    _Alignas(64) uint64_t followed;
};

const int operations = 64;
const int threads = 4;

__attribute__((noinline)) static void put(struct root *root, uint64_t value) {
    pthread_mutex_lock(&root->last_lock);
    struct node *node = nv_malloc(sizeof *node);
    node->value = value;
    atomic_init(&node->next, NULL);
    atomic_store_explicit(&root->last->next, node, memory_order_release);
    root->last = node;
    pthread_mutex_unlock(&root->last_lock);
}

__attribute__((noinline)) static void take(struct root *root) {
    pthread_mutex_lock(&root->first_lock);
    struct node *next = atomic_load_explicit(&root->first->next, memory_order_acquire);
    if (next) {
        struct node *before = root->first;
        root->taken[root->taken_count++] = next->value;
        root->first = next;
        if (before != &root->empty)
            nv_free(before);
    }
    pthread_mutex_unlock(&root->first_lock);
}

/* All that this one stores is a word, which others see at once. */
__attribute__((noinline)) static void grow(struct root *root) {
    pthread_mutex_lock(&root->growing);
    atomic_store(&root->grown, atomic_load(&root->grown) + 1);
    pthread_mutex_unlock(&root->growing);
}

__attribute__((noinline)) static void follow(struct root *root) {
    pthread_mutex_lock(&root->following);
    root->followed = atomic_load(&root->grown);
    pthread_mutex_unlock(&root->following);
}

void init(struct root *root) { root->first = root->last = &root->empty; }

/* Threads 0 and 1 put and grow, the others take and follow. */
void operate(struct root *root, int number) {
    switch (number % 8) {
    case 0:
    case 1:
        return put(root, number + 1);
    case 2:
    case 3:
        return take(root);
    case 4:
    case 5:
        return grow(root);
    case 6:
    case 7:
        return follow(root);
    }
}

/* Each value once, those of a thread in their order; nothing follows what was not there. */
const char *examine(const struct root *root, const int *is_done) {
    uint64_t last[2] = {0, 0}, count = 0, grown = 0;
    int is_seen[65] = {0};
    const struct node *node = root->first->next;
    for (uint64_t i = 0; i < root->taken_count || node; i++) {
        uint64_t value = i < root->taken_count ? root->taken[i] : node->value;
        if (i >= root->taken_count)
            node = node->next;
        if (value == 0 || value > 64 || (value - 1) % 8 > 1 || is_seen[value]++ || ++count > 16)
            return "a value is there that was not put, or twice";
        if (value < last[(value - 1) % 8])
            return "a value is behind a later one of its thread";
        last[(value - 1) % 8] = value;
    }
    for (int i = 0; i < operations; i++) {
        if (is_done[i] && i % 8 < 2 && !is_seen[i + 1])
            return "a value is missing";
        grown += is_done[i] && (i % 8 == 4 || i % 8 == 5);
    }
    if (root->last->next)
        return "the last node is not the last one";
    if (root->grown < grown)
        return "what has grown is less";
    return root->followed <= root->grown ? NULL : "something follows what is not there";
}

uint64_t known_objects(const struct root *root) {
    uint64_t nodes = root->first != &root->empty;
    for (const struct node *node = root->first->next; node; node = node->next)
        nodes++;
    return nodes;
}

uint64_t digest(const struct root *root) { return root->taken_count + root->grown; }
