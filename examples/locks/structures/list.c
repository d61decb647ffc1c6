#include "list.h"

#include <stdlib.h>

void list_begin(struct list *list) {
    pthread_mutex_init(&list->head.lock, NULL);
    list->head.next = NULL;
}

static void end_node(struct list_node *node) {
    pthread_mutex_destroy(&node->lock);
    free(node);
}

void list_end(struct list *list) {
    while (list->head.next) {
        struct list_node *node = list->head.next;
        list->head.next = node->next;
        end_node(node);
    }
    pthread_mutex_destroy(&list->head.lock);
}

/* The last node with a smaller key. The caller lets go its lock, and that of the next node, if
 * there is one. */
static struct list_node *lock_before(struct list *list, uint64_t key) {
    struct list_node *before = &list->head;
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

static void unlock_both(struct list_node *before, struct list_node *next) {
    if (next)
        pthread_mutex_unlock(&next->lock);
    pthread_mutex_unlock(&before->lock);
}

bool list_insert(struct list *list, uint64_t key, uint64_t value) {
    struct list_node *before = lock_before(list, key);
    struct list_node *next = before->next;
    bool is_there = next && next->key == key;
    struct list_node *node = is_there ? next : malloc(sizeof *node);
    if (node)
        node->value = value;
    if (node && !is_there) {
        pthread_mutex_init(&node->lock, NULL);
        node->key = key;
        node->next = next;
        before->next = node;
    }
    unlock_both(before, next);
    return node != NULL;
}

bool list_find(struct list *list, uint64_t key, uint64_t *value) {
    struct list_node *before = lock_before(list, key);
    struct list_node *next = before->next;
    bool is_there = next && next->key == key;
    if (is_there)
        *value = next->value;
    unlock_both(before, next);
    return is_there;
}

bool list_remove(struct list *list, uint64_t key) {
    struct list_node *before = lock_before(list, key);
    struct list_node *next = before->next;
    bool is_there = next && next->key == key;
    if (is_there)
        before->next = next->next;
    unlock_both(before, next);
    /* Who wants its lock has the one before: nobody is left who could. */
    if (is_there)
        end_node(next);
    return is_there;
}
