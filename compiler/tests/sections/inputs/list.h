/* A sorted list whose nodes have locks, searched hand over hand. */
#pragma once
#include "simulated.h"

struct node {
    pthread_mutex_t lock;
    struct node *next;
    uint64_t key;
};

/* The last node in front of the key, and its lock. */
static inline struct node *find(struct node *before, uint64_t key) {
    pthread_mutex_lock(&before->lock);
    while (before->next && before->next->key < key) {
        struct node *next = before->next;
        pthread_mutex_lock(&next->lock);
        pthread_mutex_unlock(&before->lock);
        before = next;
    }
    return before;
}

static inline void put_behind(struct node *before, struct node *node, uint64_t key) {
    node->key = key;
    node->next = before->next;
    before->next = node;
}
