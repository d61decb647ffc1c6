/* A sorted list whose nodes have locks: several threads walk on it behind each other, hand over
 * hand. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct list_node {
    pthread_mutex_t lock; /* of `next`, and of the next node's life */
    struct list_node *next;
    uint64_t key, value;
};

struct list {
    struct list_node head; /* in front of all keys */
};

void list_begin(struct list *list);

/* Frees all that is left. Nobody else may use the list. */
void list_end(struct list *list);

/* False: there is no memory. A key that is there already gets the value. */
bool list_insert(struct list *list, uint64_t key, uint64_t value);

/* False: the key is not there. */
bool list_find(struct list *list, uint64_t key, uint64_t *value);
bool list_remove(struct list *list, uint64_t key);
