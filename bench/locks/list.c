/* A list in the order of its keys, with a lock in each node, searched hand over hand. Half of the
 * keys are there; what is asked for is taken out if it is there, and put in if not. */
#include "kernel.h"

struct list_node {
    pthread_mutex_t lock;
    struct list_node *next;
    uint64_t key;
};

const struct row rows[] = {{"list", 1}, {"list_2", 2}, {NULL, 0}};

/* Before all keys. What a section uses is an argument: a variable of the program is gone when the
 * section goes on. */
static struct list_node *the_head;
static uint64_t keys;

/* The last node with a smaller key, locked, as the next one is, if there is one. */
static struct list_node *lock_before(struct list_node *head, uint64_t key) {
    struct list_node *before = head;
    pthread_mutex_lock(&before->lock);
    for (;;) {
        struct list_node *next = before->next;
        if (!next)
            return before;
        pthread_mutex_lock(&next->lock);
        if (next->key >= key)
            return before;
        pthread_mutex_unlock(&before->lock);
        before = next;
    }
}

static void insert(struct list_node *before, struct list_node *next, uint64_t key) {
    BEGIN(&before->lock);
    struct list_node *node = NEW(struct list_node);
    memset(&node->lock, 0, sizeof node->lock);
    INIT(node->key, key);
    INIT(node->next, next);
    SET(before->next, node);
    COMMIT();
}

static void toggle(struct list_node *head, uint64_t key) {
    struct list_node *before = lock_before(head, key);
    struct list_node *next = before->next;
    if (!next || next->key != key) {
        insert(before, next, key);
        if (next)
            pthread_mutex_unlock(&next->lock);
        pthread_mutex_unlock(&before->lock);
        return;
    }
    BEGIN(&before->lock);
    SET(before->next, next->next);
    /* Who wants its lock has the one before: nobody is left who could. */
    pthread_mutex_unlock(&next->lock);
    DROP(next);
    COMMIT();
    pthread_mutex_unlock(&before->lock);
}

void set_up(long size) {
    struct list_node *head = memory_root(sizeof *head);
    the_head = head;
    pthread_mutex_init(&head->lock, NULL);
    keys = (uint64_t)size;
}

void prepare(int row) {
    (void)row;
    /* From the end on, so that each is found at once. */
    struct list_node *head = the_head;
    while (head->next)
        toggle(head, head->next->key);
    for (uint64_t key = keys & ~(uint64_t)1; key > 0; key -= 2)
        toggle(head, key);
}

/* Each thread has keys of its own, so that it knows what there is. */
void run(int row, int thread, int threads, long operations) {
    struct list_node *head = the_head;
    (void)row;
    for (long i = 0; i < operations; i++) {
        uint64_t random = random_at((uint64_t)i * 2 + (uint64_t)thread);
        uint64_t key =
            random % (keys / (uint64_t)threads) * (uint64_t)threads + (uint64_t)thread + 1;
        toggle(head, key);
    }
}

uint64_t answer(int row) {
    uint64_t sum = 0, last = 0;
    (void)row;
    for (struct list_node *node = the_head->next; node; node = node->next) {
        if (node->key <= last)
            return UINT64_MAX;
        last = node->key;
        sum = sum * 31 + last;
    }
    return sum;
}
