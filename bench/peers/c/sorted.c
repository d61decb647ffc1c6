/* A singly linked list of entries, sorted by key. bench/core/src/structures/sorted.rs is the same
 * algorithm; a change belongs in both. */
#include "numbers.h"

struct sorted_node {
    uint64_t key;
    uint64_t value;
    TOID(struct sorted_node) next;
};

typedef TOID(struct sorted_node) node_id;

struct sorted_root {
    node_id first;
};

/* The link to the first node whose key is not below `key`, or to none. */
static node_id *link_to(struct sorted_root *root, uint64_t key) {
    node_id *link = &root->first;
    while (!TOID_IS_NULL(*link) && D_RO(*link)->key < key)
        link = &D_RW(*link)->next;
    return link;
}

static void sorted_insert(void *root, uint64_t key, uint64_t value) {
    node_id *link = link_to(root, key);
    if (!TOID_IS_NULL(*link) && D_RO(*link)->key == key) {
        TX_SET(*link, value, value);
        return;
    }
    node_id node = TX_NEW(struct sorted_node);
    D_RW(node)->key = key;
    D_RW(node)->value = value;
    D_RW(node)->next = *link;
    TX_ADD_DIRECT(link);
    *link = node;
}

static bool sorted_remove(void *root, uint64_t key) {
    node_id *link = link_to(root, key);
    node_id node = *link;
    if (TOID_IS_NULL(node) || D_RO(node)->key != key)
        return false;
    TX_ADD_DIRECT(link);
    *link = D_RO(node)->next;
    TX_FREE(node);
    return true;
}

static const uint64_t *sorted_find(const void *at, uint64_t key) {
    const struct sorted_root *root = at;
    node_id node = root->first;
    while (!TOID_IS_NULL(node)) {
        const struct sorted_node *seen = D_RO(node);
        if (seen->key >= key)
            return seen->key == key ? &seen->value : NULL;
        node = seen->next;
    }
    return NULL;
}

static void sorted_walk(const void *at, struct numbers_walk *walk) {
    const struct sorted_root *root = at;
    for (node_id node = root->first; !TOID_IS_NULL(node); node = D_RO(node)->next)
        numbers_visit(walk, D_RO(node)->key, D_RO(node)->value);
}

const struct numbers_map numbers_sorted = {
    sizeof(struct sorted_root), sorted_insert, sorted_remove, sorted_find, sorted_walk,
};
