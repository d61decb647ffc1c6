/* A binary search tree: examples/rust/src/bin/tree_durum.rs, with snapshots of what changes alone.
 */
#include "../numbers.h"

struct bst_node {
    int64_t key;
    int64_t value;
    TOID(struct bst_node) less;
    TOID(struct bst_node) greater;
};

typedef TOID(struct bst_node) bst_id;

struct bst_root {
    bst_id top;
    uint64_t length;
};

/* The link that leads to the node with a key, or where it would be. */
static bst_id *link_to(struct bst_root *root, int64_t key) {
    bst_id *link = &root->top;
    while (!TOID_IS_NULL(*link) && D_RO(*link)->key != key) {
        struct bst_node *node = D_RW(*link);
        link = key < node->key ? &node->less : &node->greater;
    }
    return link;
}

static void bst_insert(void *at, uint64_t key, uint64_t value) {
    struct bst_root *root = at;
    bst_id *link = link_to(root, (int64_t)key);
    if (!TOID_IS_NULL(*link)) {
        TX_SET(*link, value, (int64_t)value);
        return;
    }
    bst_id node = TX_NEW(struct bst_node);
    D_RW(node)->key = (int64_t)key;
    D_RW(node)->value = (int64_t)value;
    D_RW(node)->less = TOID_NULL(struct bst_node);
    D_RW(node)->greater = TOID_NULL(struct bst_node);
    TX_ADD_DIRECT(link);
    *link = node;
    TX_SET_DIRECT(root, length, root->length + 1);
}

/* Takes the next greater node below `node`, which has two sides, out of its place, and gives it the
 * sides. */
static bst_id take_next(bst_id node) {
    bst_id *link = &D_RW(node)->greater;
    while (!TOID_IS_NULL(D_RO(*link)->less))
        link = &D_RW(*link)->less;
    bst_id next = *link;
    TX_ADD(next);
    if (!TOID_EQUALS(D_RO(node)->greater, next)) {
        TX_ADD_DIRECT(link);
        *link = D_RO(next)->greater;
        D_RW(next)->greater = D_RO(node)->greater;
    }
    D_RW(next)->less = D_RO(node)->less;
    return next;
}

static bool bst_remove(void *at, uint64_t key) {
    struct bst_root *root = at;
    bst_id *link = link_to(root, (int64_t)key);
    bst_id node = *link;
    if (TOID_IS_NULL(node))
        return false;
    bst_id heir;
    if (TOID_IS_NULL(D_RO(node)->less))
        heir = D_RO(node)->greater;
    else if (TOID_IS_NULL(D_RO(node)->greater))
        heir = D_RO(node)->less;
    else
        heir = take_next(node);
    TX_ADD_DIRECT(link);
    *link = heir;
    TX_SET_DIRECT(root, length, root->length - 1);
    TX_FREE(node);
    return true;
}

static const uint64_t *bst_find(const void *at, uint64_t key) {
    const struct bst_root *root = at;
    bst_id node = root->top;
    while (!TOID_IS_NULL(node)) {
        const struct bst_node *seen = D_RO(node);
        if (seen->key == (int64_t)key)
            return (const uint64_t *)&seen->value;
        node = (int64_t)key < seen->key ? seen->less : seen->greater;
    }
    return NULL;
}

static void walk_below(bst_id node, struct numbers_walk *walk) {
    while (!TOID_IS_NULL(node)) {
        const struct bst_node *seen = D_RO(node);
        walk_below(seen->less, walk);
        numbers_visit(walk, (uint64_t)seen->key, (uint64_t)seen->value);
        node = seen->greater;
    }
}

static void bst_walk(const void *at, struct numbers_walk *walk) {
    const struct bst_root *root = at;
    walk_below(root->top, walk);
}

const struct numbers_map numbers_bst = {
    sizeof(struct bst_root), bst_insert, bst_remove, bst_find, bst_walk,
};
