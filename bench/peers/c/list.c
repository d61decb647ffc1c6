#include "pool.h"

struct list_node {
    uint64_t value;
    TOID(struct list_node) next;
};

struct list_root {
    TOID(struct list_node) head;
    TOID(struct list_node) tail;
};

struct peer_list {
    struct pool pool;
    struct list_root *root;
};

struct peer_list *peer_list_open(const char *path, size_t pool_size) {
    struct peer_list *list = calloc(1, sizeof(*list));
    if (list == NULL || pool_create(&list->pool, path, pool_size) != 0) {
        free(list);
        return NULL;
    }
    list->root = pmemobj_direct(pmemobj_root(list->pool.pop, sizeof(struct list_root)));
    if (list->root == NULL) {
        peer_list_close(list);
        return NULL;
    }
    return list;
}

void peer_list_close(struct peer_list *list) {
    if (list != NULL)
        pool_remove(&list->pool);
    free(list);
}

static int append(struct peer_list *list, uint64_t value) {
    int result = 0;
    TX_BEGIN(list->pool.pop) {
        struct list_root *root = list->root;
        TOID(struct list_node) node = TX_NEW(struct list_node);
        D_RW(node)->value = value;
        D_RW(node)->next = TOID_NULL(struct list_node);
        if (TOID_IS_NULL(root->tail)) {
            TX_ADD_DIRECT(root); /* head and tail lie side by side: one snapshot */
            root->head = node;
            root->tail = node;
        } else {
            TX_SET(root->tail, next, node);
            TX_SET_DIRECT(root, tail, node);
        }
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_list_append(struct peer_list *list, const uint64_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (append(list, values[i]) != 0)
            return -1;
    }
    return 0;
}

struct peer_walk peer_list_sum(struct peer_list *list) {
    struct peer_walk walk = {0, 0, 1};
    TOID(struct list_node) node = list->root->head;
    while (!TOID_IS_NULL(node)) {
        walk.sum += D_RO(node)->value;
        walk.count++;
        node = D_RO(node)->next;
    }
    return walk;
}

static int pop(struct peer_list *list) {
    int result = 0;
    TX_BEGIN(list->pool.pop) {
        struct list_root *root = list->root;
        TOID(struct list_node) node = root->head;
        TOID(struct list_node) next = D_RO(node)->next;
        if (TOID_IS_NULL(next)) {
            TX_ADD_DIRECT(root);
            root->head = next;
            root->tail = next;
        } else {
            TX_SET_DIRECT(root, head, next);
        }
        TX_FREE(node);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_list_pop(struct peer_list *list, size_t count, uint64_t *sum) {
    for (size_t i = 0; i < count && !TOID_IS_NULL(list->root->head); i++) {
        *sum += D_RO(list->root->head)->value;
        if (pop(list) != 0)
            return -1;
    }
    return 0;
}
