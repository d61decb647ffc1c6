/*
 * A B+tree of fan-out 8: examples/rust/src/bin/btree_durum.rs. Full nodes are split on the way
 * down; a child that runs low is given items of a neighbour on the way back.
 *
 * As in tree.c, a node is snapshotted whole before its first change, and only one that changes.
 */
#include "../numbers.h"

#define FANOUT 8

struct bplus_node {
    uint64_t length;
    uint64_t level;        /* 0 at the bottom */
    uint64_t keys[FANOUT]; /* one of a child is not greater than any in the child */
    union {
        uint64_t value;
        TOID(struct bplus_node) child;
    } items[FANOUT];
};

typedef TOID(struct bplus_node) node_id;

struct bplus_root {
    node_id top;
    uint64_t length;
};

static node_id new_node(uint64_t level) {
    node_id node = TX_NEW(struct bplus_node);
    D_RW(node)->length = 0;
    D_RW(node)->level = level;
    return node;
}

/* The node, ready to be changed in the running transaction. */
static struct bplus_node *edit(node_id node) {
    TX_ADD(node);
    return D_RW(node);
}

/* How many keys are not greater than this one. */
static size_t position(const struct bplus_node *node, uint64_t key) {
    size_t at = 0;
    while (at < node->length && node->keys[at] <= key)
        at++;
    return at;
}

/* Makes room for an item at a place, with its key. */
static void open_gap(struct bplus_node *node, size_t at, uint64_t key) {
    size_t moved = node->length - at;
    memmove(&node->keys[at + 1], &node->keys[at], moved * sizeof(node->keys[0]));
    memmove(&node->items[at + 1], &node->items[at], moved * sizeof(node->items[0]));
    node->keys[at] = key;
    node->length++;
}

static void close_gap(struct bplus_node *node, size_t at) {
    node->length--;
    size_t moved = node->length - at;
    memmove(&node->keys[at], &node->keys[at + 1], moved * sizeof(node->keys[0]));
    memmove(&node->items[at], &node->items[at + 1], moved * sizeof(node->items[0]));
}

/* Copies items to the end of another node. */
static void copy_items(struct bplus_node *to, const struct bplus_node *from, size_t first,
                       size_t count) {
    memcpy(&to->keys[to->length], &from->keys[first], count * sizeof(to->keys[0]));
    memcpy(&to->items[to->length], &from->items[first], count * sizeof(to->items[0]));
    to->length += count;
}

/* Moves the upper half of the full child at a place into a new one behind it. */
static void split_child(node_id parent, size_t at) {
    struct bplus_node *up = edit(parent);
    struct bplus_node *lower = edit(up->items[at].child);
    node_id upper = new_node(lower->level);
    copy_items(D_RW(upper), lower, FANOUT / 2, FANOUT / 2);
    lower->length = FANOUT / 2;
    open_gap(up, at + 1, D_RO(upper)->keys[0]);
    up->items[at + 1].child = upper;
}

/* The top, with room for one more. */
static node_id roomy_top(struct bplus_root *root) {
    node_id old = root->top;
    if (!TOID_IS_NULL(old) && D_RO(old)->length < FANOUT)
        return old;
    node_id top = new_node(TOID_IS_NULL(old) ? 0 : D_RO(old)->level + 1);
    if (!TOID_IS_NULL(old)) {
        open_gap(D_RW(top), 0, D_RO(old)->keys[0]);
        D_RW(top)->items[0].child = old;
    }
    TX_SET_DIRECT(root, top, top);
    return top;
}

static void bplus_insert(void *root_at, uint64_t key, uint64_t value) {
    struct bplus_root *root = root_at;
    node_id node = roomy_top(root);
    while (D_RO(node)->level > 0) {
        size_t at = position(D_RO(node), key);
        size_t below = at == 0 ? 0 : at - 1;
        node_id child = D_RO(node)->items[below].child;
        if (D_RO(child)->length == FANOUT) {
            split_child(node, below);
            continue;
        }
        if (at == 0)
            edit(node)->keys[0] = key;
        node = child;
    }
    size_t at = position(D_RO(node), key);
    if (at > 0 && D_RO(node)->keys[at - 1] == key) {
        TX_SET(node, items[at - 1].value, value);
        return;
    }
    struct bplus_node *leaf = edit(node);
    open_gap(leaf, at, key);
    leaf->items[at].value = value;
    TX_SET_DIRECT(root, length, root->length + 1);
}

/* Gives the child at a place, if it has too few items, one of its neighbour's or all. */
static void fill(node_id parent, size_t at) {
    const struct bplus_node *up = D_RO(parent);
    if (up->length < 2)
        return;
    size_t left = at < up->length - 2 ? at : up->length - 2;
    node_id low = up->items[left].child;
    node_id high = up->items[left + 1].child;
    size_t low_length = D_RO(low)->length, high_length = D_RO(high)->length;
    if (low_length >= FANOUT / 2 && high_length >= FANOUT / 2)
        return;
    struct bplus_node *a = edit(low);
    if (low_length + high_length <= FANOUT) {
        copy_items(a, D_RO(high), 0, high_length);
        close_gap(edit(parent), left + 1);
        TX_FREE(high);
        return;
    }
    struct bplus_node *b = edit(high);
    if (low_length < high_length) {
        copy_items(a, b, 0, 1);
        close_gap(b, 0);
    } else {
        a->length--;
        open_gap(b, 0, a->keys[a->length]);
        b->items[0] = a->items[a->length];
    }
    edit(parent)->keys[left + 1] = b->keys[0];
}

static bool remove_below(node_id node, uint64_t key) {
    size_t at = position(D_RO(node), key);
    if (at == 0)
        return false;
    at--;
    if (D_RO(node)->level == 0) {
        bool found = D_RO(node)->keys[at] == key;
        if (found)
            close_gap(edit(node), at);
        return found;
    }
    if (!remove_below(D_RO(node)->items[at].child, key))
        return false;
    fill(node, at);
    return true;
}

static bool bplus_remove(void *root_at, uint64_t key) {
    struct bplus_root *root = root_at;
    node_id top = root->top;
    if (TOID_IS_NULL(top) || !remove_below(top, key))
        return false;
    TX_SET_DIRECT(root, length, root->length - 1);
    if (D_RO(top)->level > 0 && D_RO(top)->length == 1) {
        TX_SET_DIRECT(root, top, D_RO(top)->items[0].child);
        TX_FREE(top);
    }
    return true;
}

static const uint64_t *bplus_find(const void *root_at, uint64_t key) {
    const struct bplus_root *root = root_at;
    node_id node = root->top;
    while (!TOID_IS_NULL(node)) {
        const struct bplus_node *seen = D_RO(node);
        size_t at = position(seen, key);
        if (at == 0)
            return NULL;
        at--;
        if (seen->level == 0)
            return seen->keys[at] == key ? &seen->items[at].value : NULL;
        node = seen->items[at].child;
    }
    return NULL;
}

static void walk_below(node_id node, struct numbers_walk *walk) {
    const struct bplus_node *seen = D_RO(node);
    for (size_t i = 0; i < seen->length; i++) {
        if (seen->level == 0)
            numbers_visit(walk, seen->keys[i], seen->items[i].value);
        else
            walk_below(seen->items[i].child, walk);
    }
}

static void bplus_walk(const void *root_at, struct numbers_walk *walk) {
    const struct bplus_root *root = root_at;
    if (!TOID_IS_NULL(root->top))
        walk_below(root->top, walk);
}

const struct numbers_map numbers_bplus = {
    sizeof(struct bplus_root), bplus_insert, bplus_remove, bplus_find, bplus_walk,
};
