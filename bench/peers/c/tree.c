/*
 * A B-tree of order 8: at most 8 children and 7 keys in a node, at least 3 keys except in the root.
 * One pass from the root: a full node is split before an insertion enters it, and a node with 3
 * keys gets a fourth before a deletion enters it, so nothing is ever repaired upwards.
 * bench/core/src/structures/tree.rs is the same algorithm line by line; a change belongs in both.
 *
 * A node is snapshotted whole before its first change: here a snapshot costs two fences, and its
 * length little.
 */
#include <stdbool.h>

#include "pool.h"

#define KEYS_MAX 7
#define KEYS_MIN 3

struct tree_node {
    uint64_t count;
    uint64_t keys[KEYS_MAX];
    uint64_t values[KEYS_MAX];
    TOID(struct tree_node) children[KEYS_MAX + 1]; /* all null in a leaf */
};

typedef TOID(struct tree_node) node_id;

struct tree_root {
    node_id top;
};

struct peer_tree {
    struct pool pool;
    struct tree_root *root;
};

struct peer_tree *peer_tree_open(const char *path, size_t pool_size) {
    struct peer_tree *tree = calloc(1, sizeof(*tree));
    if (tree == NULL || pool_create(&tree->pool, path, pool_size) != 0) {
        free(tree);
        return NULL;
    }
    tree->root = pmemobj_direct(pmemobj_root(tree->pool.pop, sizeof(struct tree_root)));
    if (tree->root == NULL) {
        peer_tree_close(tree);
        return NULL;
    }
    return tree;
}

void peer_tree_close(struct peer_tree *tree) {
    if (tree != NULL)
        pool_remove(&tree->pool);
    free(tree);
}

static inline bool is_leaf(const struct tree_node *node) {
    return TOID_IS_NULL(node->children[0]);
}

/* The first place whose key is not below `key`. */
static inline size_t place_of(const struct tree_node *node, uint64_t key) {
    size_t place = 0;
    while (place < node->count && node->keys[place] < key)
        place++;
    return place;
}

/* The node, ready to be changed in the running transaction. */
static inline struct tree_node *edit(node_id node) {
    TX_ADD(node);
    return D_RW(node);
}

static node_id new_node(void) {
    node_id node = TX_NEW(struct tree_node);
    struct tree_node *fresh = D_RW(node);
    fresh->count = 0;
    for (size_t i = 0; i <= KEYS_MAX; i++)
        fresh->children[i] = TOID_NULL(struct tree_node);
    return node;
}

/* Opens a gap for one entry at `place` (the child beside it moves along to its right). */
static inline void open_gap(struct tree_node *node, size_t place) {
    size_t moved = node->count - place;
    memmove(&node->keys[place + 1], &node->keys[place], moved * sizeof(node->keys[0]));
    memmove(&node->values[place + 1], &node->values[place], moved * sizeof(node->values[0]));
    node->count++;
}

static inline void close_gap(struct tree_node *node, size_t place) {
    size_t moved = node->count - place - 1;
    memmove(&node->keys[place], &node->keys[place + 1], moved * sizeof(node->keys[0]));
    memmove(&node->values[place], &node->values[place + 1], moved * sizeof(node->values[0]));
    node->count--;
}

/* Splits the full child at `place` of `parent`; its middle entry moves up to that place. */
static void split_child(node_id parent, size_t place) {
    node_id left_id = D_RO(parent)->children[place];
    node_id right_id = new_node();
    struct tree_node *left = edit(left_id);
    struct tree_node *right = D_RW(right_id);
    size_t moved = KEYS_MAX - KEYS_MIN - 1;
    memcpy(right->keys, &left->keys[KEYS_MIN + 1], moved * sizeof(left->keys[0]));
    memcpy(right->values, &left->values[KEYS_MIN + 1], moved * sizeof(left->values[0]));
    if (!is_leaf(left))
        memcpy(right->children, &left->children[KEYS_MIN + 1],
               (moved + 1) * sizeof(left->children[0]));
    right->count = moved;
    left->count = KEYS_MIN;

    struct tree_node *up = edit(parent);
    size_t children = up->count - place;
    open_gap(up, place);
    memmove(&up->children[place + 2], &up->children[place + 1], children * sizeof(up->children[0]));
    up->keys[place] = left->keys[KEYS_MIN];
    up->values[place] = left->values[KEYS_MIN];
    up->children[place + 1] = right_id;
}

static void insert(struct tree_root *root, uint64_t key, uint64_t value) {
    node_id node = root->top;
    if (TOID_IS_NULL(node)) {
        node = new_node();
        TX_SET_DIRECT(root, top, node);
        struct tree_node *fresh = D_RW(node);
        fresh->count = 1;
        fresh->keys[0] = key;
        fresh->values[0] = value;
        return;
    }
    if (D_RO(node)->count == KEYS_MAX) {
        node_id top = new_node();
        D_RW(top)->children[0] = node;
        split_child(top, 0);
        TX_SET_DIRECT(root, top, top);
        node = top;
    }
    for (;;) {
        const struct tree_node *seen = D_RO(node);
        size_t place = place_of(seen, key);
        if (place < seen->count && seen->keys[place] == key) {
            edit(node)->values[place] = value;
            return;
        }
        if (is_leaf(seen)) {
            struct tree_node *leaf = edit(node);
            open_gap(leaf, place);
            leaf->keys[place] = key;
            leaf->values[place] = value;
            return;
        }
        if (D_RO(seen->children[place])->count == KEYS_MAX) {
            split_child(node, place);
            continue; /* the entry that came up decides between the halves */
        }
        node = seen->children[place];
    }
}

/* Joins the children at `place` and `place + 1` of `parent` around the entry between them. */
static node_id merge_children(node_id parent, size_t place) {
    node_id left_id = D_RO(parent)->children[place];
    node_id right_id = D_RO(parent)->children[place + 1];
    const struct tree_node *right = D_RO(right_id);
    struct tree_node *left = edit(left_id);
    struct tree_node *up = edit(parent);
    size_t end = left->count + 1;
    left->keys[left->count] = up->keys[place];
    left->values[left->count] = up->values[place];
    memcpy(&left->keys[end], right->keys, right->count * sizeof(left->keys[0]));
    memcpy(&left->values[end], right->values, right->count * sizeof(left->values[0]));
    if (!is_leaf(right))
        memcpy(&left->children[end], right->children,
               (right->count + 1) * sizeof(left->children[0]));
    left->count = end + right->count;

    size_t children = up->count - place - 1;
    close_gap(up, place);
    memmove(&up->children[place + 1], &up->children[place + 2], children * sizeof(up->children[0]));
    TX_FREE(right_id);
    return left_id;
}

/* An entry moves from the left neighbour through the parent into the child at `place`. */
static void borrow_from_left(node_id parent, size_t place) {
    struct tree_node *up = edit(parent);
    struct tree_node *left = edit(up->children[place - 1]);
    struct tree_node *child = edit(up->children[place]);
    size_t last = left->count - 1;
    size_t children = child->count + 1;
    open_gap(child, 0);
    child->keys[0] = up->keys[place - 1];
    child->values[0] = up->values[place - 1];
    if (!is_leaf(child)) {
        memmove(&child->children[1], &child->children[0], children * sizeof(child->children[0]));
        child->children[0] = left->children[last + 1];
    }
    up->keys[place - 1] = left->keys[last];
    up->values[place - 1] = left->values[last];
    left->count = last;
}

static void borrow_from_right(node_id parent, size_t place) {
    struct tree_node *up = edit(parent);
    struct tree_node *child = edit(up->children[place]);
    struct tree_node *right = edit(up->children[place + 1]);
    size_t end = child->count;
    child->keys[end] = up->keys[place];
    child->values[end] = up->values[place];
    child->count = end + 1;
    up->keys[place] = right->keys[0];
    up->values[place] = right->values[0];
    if (!is_leaf(child)) {
        child->children[end + 1] = right->children[0];
        memmove(&right->children[0], &right->children[1],
                right->count * sizeof(right->children[0]));
    }
    close_gap(right, 0);
}

/* The node into which a deletion may descend at `place`: it has more than the fewest keys. */
static node_id fill_child(node_id node, size_t place) {
    const struct tree_node *seen = D_RO(node);
    if (D_RO(seen->children[place])->count > KEYS_MIN)
        return seen->children[place];
    if (place > 0 && D_RO(seen->children[place - 1])->count > KEYS_MIN) {
        borrow_from_left(node, place);
        return D_RO(node)->children[place];
    }
    if (place < seen->count && D_RO(seen->children[place + 1])->count > KEYS_MIN) {
        borrow_from_right(node, place);
        return D_RO(node)->children[place];
    }
    return merge_children(node, place < seen->count ? place : place - 1);
}

static bool delete (struct tree_root *root, uint64_t key) {
    node_id node = root->top;
    if (TOID_IS_NULL(node))
        return false;
    bool found = false;
    for (;;) {
        const struct tree_node *seen = D_RO(node);
        size_t place = place_of(seen, key);
        bool here = place < seen->count && seen->keys[place] == key;
        if (is_leaf(seen)) {
            if (here && seen->count == 1) { /* only a leaf at the top can run empty */
                TX_SET_DIRECT(root, top, TOID_NULL(struct tree_node));
                TX_FREE(node);
            } else if (here) {
                close_gap(edit(node), place);
            }
            return found || here;
        }
        node_id child;
        if (!here) {
            child = fill_child(node, place);
        } else if (D_RO(seen->children[place])->count > KEYS_MIN) {
            child = seen->children[place];
            const struct tree_node *last = D_RO(child);
            while (!is_leaf(last))
                last = D_RO(last->children[last->count]);
            struct tree_node *changed = edit(node);
            key = changed->keys[place] = last->keys[last->count - 1];
            changed->values[place] = last->values[last->count - 1];
            found = true;
        } else if (D_RO(seen->children[place + 1])->count > KEYS_MIN) {
            child = seen->children[place + 1];
            const struct tree_node *first = D_RO(child);
            while (!is_leaf(first))
                first = D_RO(first->children[0]);
            struct tree_node *changed = edit(node);
            key = changed->keys[place] = first->keys[0];
            changed->values[place] = first->values[0];
            found = true;
        } else {
            child = merge_children(node, place);
        }
        if (D_RO(node)->count ==
            0) { /* the top gave its last key away: the tree is one level lower */
            TX_SET_DIRECT(root, top, child);
            TX_FREE(node);
        }
        node = child;
    }
}

static int tx_insert(struct peer_tree *tree, const struct peer_op *entry) {
    int result = 0;
    TX_BEGIN(tree->pool.pop) {
        insert(tree->root, entry->key, entry->value);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

static int tx_delete(struct peer_tree *tree, uint64_t key, uint64_t *found) {
    int result = 0;
    TX_BEGIN(tree->pool.pop) {
        *found += delete (tree->root, key);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_tree_insert(struct peer_tree *tree, const struct peer_op *entries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (tx_insert(tree, &entries[i]) != 0)
            return -1;
    }
    return 0;
}

uint64_t peer_tree_lookup(struct peer_tree *tree, const uint64_t *keys, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        node_id node = tree->root->top;
        while (!TOID_IS_NULL(node)) {
            const struct tree_node *seen = D_RO(node);
            size_t place = place_of(seen, keys[i]);
            if (place < seen->count && seen->keys[place] == keys[i]) {
                sum += seen->values[place];
                break;
            }
            node = seen->children[place];
        }
    }
    return sum;
}

int peer_tree_delete(struct peer_tree *tree, const uint64_t *keys, size_t count, uint64_t *found) {
    *found = 0;
    for (size_t i = 0; i < count; i++) {
        if (tx_delete(tree, keys[i], found) != 0)
            return -1;
    }
    return 0;
}

static void scan_node(node_id id, uint64_t key, uint64_t *left, uint64_t *sum) {
    if (TOID_IS_NULL(id))
        return;
    const struct tree_node *node = D_RO(id);
    for (size_t i = place_of(node, key);; i++) {
        if (!is_leaf(node))
            scan_node(node->children[i], key, left, sum);
        if (i == node->count || *left == 0)
            return;
        *sum += node->values[i];
        --*left;
    }
}

int peer_tree_serve(struct peer_tree *tree, const struct peer_scan *requests, size_t count,
                    uint64_t *sum) {
    for (size_t i = 0; i < count; i++) {
        if (requests[i].length == 0) {
            struct peer_op entry = {requests[i].key, requests[i].value};
            if (peer_tree_insert(tree, &entry, 1) != 0)
                return -1;
        } else {
            uint64_t left = requests[i].length;
            scan_node(tree->root->top, requests[i].key, &left, sum);
        }
    }
    return 0;
}

struct walk_state {
    struct peer_walk walk;
    uint64_t last;
};

static void walk_node(node_id id, struct walk_state *state) {
    if (TOID_IS_NULL(id))
        return;
    const struct tree_node *node = D_RO(id);
    for (size_t i = 0; i <= node->count; i++) {
        if (!is_leaf(node))
            walk_node(node->children[i], state);
        if (i == node->count)
            break;
        if (state->walk.count != 0 && node->keys[i] <= state->last)
            state->walk.sorted = 0;
        state->last = node->keys[i];
        state->walk.sum += node->keys[i] ^ node->values[i];
        state->walk.count++;
    }
}

struct peer_walk peer_tree_walk(struct peer_tree *tree) {
    struct walk_state state = {{0, 0, 1}, 0};
    walk_node(tree->root->top, &state);
    return state.walk;
}
