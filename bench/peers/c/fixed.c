/* A hash map whose number of chains never changes. bench/core/src/structures/map.rs is the same
 * algorithm; a change belongs in both. */
#include "numbers.h"

#define BUCKET_BITS 11

struct fixed_node {
    uint64_t key;
    TOID(struct fixed_node) next;
    uint64_t value;
};

typedef TOID(struct fixed_node) node_id;

struct fixed_root {
    node_id heads[1 << BUCKET_BITS];
};

static inline size_t bucket_of(uint64_t key) {
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - BUCKET_BITS);
}

/* The link to the node with a key, or to none at the end of its chain. */
static node_id *link_to(struct fixed_root *root, uint64_t key) {
    node_id *link = &root->heads[bucket_of(key)];
    while (!TOID_IS_NULL(*link) && D_RO(*link)->key != key)
        link = &D_RW(*link)->next;
    return link;
}

static void fixed_insert(void *at, uint64_t key, uint64_t value) {
    struct fixed_root *root = at;
    node_id known = *link_to(root, key);
    if (!TOID_IS_NULL(known)) {
        TX_SET(known, value, value);
        return;
    }
    node_id *head = &root->heads[bucket_of(key)];
    node_id node = TX_NEW(struct fixed_node);
    D_RW(node)->key = key;
    D_RW(node)->next = *head;
    D_RW(node)->value = value;
    TX_ADD_DIRECT(head);
    *head = node;
}

static bool fixed_remove(void *root, uint64_t key) {
    node_id *link = link_to(root, key);
    node_id node = *link;
    if (TOID_IS_NULL(node))
        return false;
    TX_ADD_DIRECT(link);
    *link = D_RO(node)->next;
    TX_FREE(node);
    return true;
}

static const uint64_t *fixed_find(const void *at, uint64_t key) {
    const struct fixed_root *root = at;
    node_id node = root->heads[bucket_of(key)];
    while (!TOID_IS_NULL(node)) {
        const struct fixed_node *seen = D_RO(node);
        if (seen->key == key)
            return &seen->value;
        node = seen->next;
    }
    return NULL;
}

static void fixed_walk(const void *at, struct numbers_walk *walk) {
    const struct fixed_root *root = at;
    for (size_t bucket = 0; bucket < (size_t)1 << BUCKET_BITS; bucket++) {
        node_id node = root->heads[bucket];
        while (!TOID_IS_NULL(node)) {
            numbers_visit(walk, D_RO(node)->key, D_RO(node)->value);
            node = D_RO(node)->next;
        }
    }
}

const struct numbers_map numbers_fixed = {
    sizeof(struct fixed_root), fixed_insert, fixed_remove, fixed_find, fixed_walk,
};
