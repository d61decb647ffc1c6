/* A queue with a lock for each end, so that who puts and who takes do not wait for each other. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct queue_node;

struct queue {
    pthread_mutex_t first_lock, last_lock;
    struct queue_node *first; /* its value has been taken */
    struct queue_node *last;
};

/* False: there is no memory. */
bool queue_begin(struct queue *queue);

/* Frees all that is left. Nobody else may use the queue. */
void queue_end(struct queue *queue);

/* False: there is no memory. */
bool queue_put(struct queue *queue, uint64_t value);

/* False: the queue is empty. */
bool queue_take(struct queue *queue, uint64_t *value);
