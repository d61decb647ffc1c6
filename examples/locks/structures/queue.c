/* The two-lock queue of Michael and Scott (PODC 1996). */
#include "queue.h"

#include <stdatomic.h>
#include <stdlib.h>

struct queue_node {
    /* In an empty queue both ends are this node: one side reads what the other one writes, each
     * with its own lock. */
    _Atomic(struct queue_node *) next;
    uint64_t value;
};

static struct queue_node *new_node(uint64_t value) {
    struct queue_node *node = malloc(sizeof *node);
    if (node) {
        atomic_init(&node->next, NULL);
        node->value = value;
    }
    return node;
}

bool queue_begin(struct queue *queue) {
    pthread_mutex_init(&queue->first_lock, NULL);
    pthread_mutex_init(&queue->last_lock, NULL);
    queue->first = queue->last = new_node(0);
    return queue->first != NULL;
}

void queue_end(struct queue *queue) {
    uint64_t value;
    while (queue_take(queue, &value))
        ;
    free(queue->first);
    pthread_mutex_destroy(&queue->first_lock);
    pthread_mutex_destroy(&queue->last_lock);
}

bool queue_put(struct queue *queue, uint64_t value) {
    struct queue_node *node = new_node(value);
    if (!node)
        return false;
    pthread_mutex_lock(&queue->last_lock);
    atomic_store_explicit(&queue->last->next, node, memory_order_release);
    queue->last = node;
    pthread_mutex_unlock(&queue->last_lock);
    return true;
}

bool queue_take(struct queue *queue, uint64_t *value) {
    pthread_mutex_lock(&queue->first_lock);
    struct queue_node *taken = queue->first;
    struct queue_node *next = atomic_load_explicit(&taken->next, memory_order_acquire);
    if (next) {
        *value = next->value;
        queue->first = next;
    }
    pthread_mutex_unlock(&queue->first_lock);
    if (!next)
        return false;
    free(taken);
    return true;
}
