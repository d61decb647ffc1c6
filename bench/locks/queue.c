/* The two-lock queue of Michael and Scott (PODC 1996). Each thread puts three values in and takes
 * three. */
#include "kernel.h"

struct queue_node {
    /* In an empty queue both ends are this node: one side reads what the other one writes, each
     * with its own lock. */
    _Atomic(struct queue_node *) next;
    uint64_t value;
};

/* Each end in lines of its own. */
struct queue {
    _Alignas(64) pthread_mutex_t first_lock;
    struct queue_node *first;
    _Alignas(64) pthread_mutex_t last_lock;
    struct queue_node *last;
};

const struct row rows[] = {{"queue", 1}, {"queue_2", 2}, {NULL, 0}};

/* What a section uses is an argument: a variable of the program is gone when the section goes on.
 */
static struct queue *the_queue;

static void put(struct queue *queue, uint64_t value) {
    pthread_mutex_lock(&queue->last_lock);
    BEGIN(&queue->last_lock);
    struct queue_node *node = NEW(struct queue_node);
    INIT(node->value, value);
    INIT(node->next, NULL);
    SET_RELEASE(queue->last->next, node);
    SET(queue->last, node);
    COMMIT();
    pthread_mutex_unlock(&queue->last_lock);
}

static bool take(struct queue *queue, uint64_t *value) {
    pthread_mutex_lock(&queue->first_lock);
    struct queue_node *taken = queue->first;
    struct queue_node *next = atomic_load_explicit(&taken->next, memory_order_acquire);
    if (next) {
        BEGIN(&queue->first_lock);
        *value = next->value;
        SET(queue->first, next);
        DROP(taken);
        COMMIT();
    }
    pthread_mutex_unlock(&queue->first_lock);
    return next != NULL;
}

/* Of what was taken, by all threads. */
static atomic_ullong taken_sum;

void set_up(long size) {
    (void)size;
    struct queue *queue = memory_root(sizeof *queue);
    the_queue = queue;
    pthread_mutex_init(&queue->first_lock, NULL);
    pthread_mutex_init(&queue->last_lock, NULL);
    pthread_mutex_lock(&queue->last_lock);
    BEGIN(&queue->last_lock);
    struct queue_node *node = NEW(struct queue_node);
    INIT(node->value, 0);
    INIT(node->next, NULL);
    SET(queue->first, node);
    SET(queue->last, node);
    COMMIT();
    pthread_mutex_unlock(&queue->last_lock);
}

void prepare(int row) {
    uint64_t value;
    (void)row;
    while (take(the_queue, &value))
        ;
    atomic_store(&taken_sum, 0);
}

void run(int row, int thread, int threads, long operations) {
    struct queue *queue = the_queue;
    uint64_t sum = 0, value;
    (void)row;
    for (long i = 0; i + 6 <= operations; i += 6) {
        for (long j = 0; j < 3; j++)
            put(queue, (uint64_t)(i + j) * (uint64_t)threads + (uint64_t)thread);
        for (int j = 0; j < 3; j++)
            sum += take(queue, &value) ? value : 0;
    }
    atomic_fetch_add(&taken_sum, sum);
}

uint64_t answer(int row) {
    uint64_t sum = atomic_load(&taken_sum);
    (void)row;
    for (struct queue_node *node = atomic_load(&the_queue->first->next); node;
         node = atomic_load(&node->next))
        sum += node->value;
    return sum;
}
