/*
 * A red-black tree: a red node has no red child, and each way down from the top meets as many black
 * nodes. Nodes know their children only. An update notes the way that it takes down, changes the
 * tree at its end, and comes back along it as far as colours must change.
 * bench/core/src/structures/redblack.rs is the same algorithm function by function; a change
 * belongs in both.
 *
 * As in tree.c, a node is snapshotted whole before its first change.
 */
#include "numbers.h"

/* Where lesser keys are, and greater ones. */
enum { LESS, GREATER };
/* No tree that fits a machine has a longer way. */
#define STEPS_MAX 128

struct redblack_node {
    uint64_t key;
    uint64_t value;
    TOID(struct redblack_node) children[2];
    uint64_t red; /* 1, or 0 if it is black */
};

typedef TOID(struct redblack_node) node_id;

struct redblack_root {
    node_id top;
};

/* The way down to where the tree is changed: from nodes to their children on a side. */
struct way {
    struct redblack_root *root;
    size_t steps;
    struct step {
        node_id node;
        size_t side;
    } step[STEPS_MAX];
};

/* The node, ready to be changed in the running transaction. */
static inline struct redblack_node *edit(node_id node) {
    TX_ADD(node);
    return D_RW(node);
}

/* Null is black. */
static inline bool is_red(node_id node) {
    return !TOID_IS_NULL(node) && D_RO(node)->red != 0;
}

static inline void note(struct way *way, node_id node, size_t side) {
    way->step[way->steps++] = (struct step){node, side};
}

/* Goes down to the node with a key, or, if there is none, to where it would be: null. */
static node_id find(struct way *way, uint64_t key) {
    node_id node = way->root->top;
    while (!TOID_IS_NULL(node) && D_RO(node)->key != key) {
        size_t side = D_RO(node)->key < key;
        note(way, node, side);
        node = D_RO(node)->children[side];
    }
    return node;
}

/* Puts a node where so many steps of the way lead. */
static void hang(struct way *way, size_t steps, node_id node) {
    if (steps == 0) {
        if (!TOID_EQUALS(way->root->top, node))
            TX_SET_DIRECT(way->root, top, node);
        return;
    }
    edit(way->step[steps - 1].node)->children[way->step[steps - 1].side] = node;
}

/* Turns a node down to one side: its child on the other side gets its colour, and is to get its
 * place. The node itself becomes red or black. */
static node_id rotate(node_id node, size_t side, uint64_t red) {
    struct redblack_node *lower = edit(node);
    node_id raised = lower->children[1 - side];
    struct redblack_node *upper = edit(raised);
    lower->children[1 - side] = upper->children[side];
    upper->children[side] = node;
    upper->red = lower->red;
    lower->red = red;
    return raised;
}

/* A red node was put where so many steps lead: perhaps below a red one. */
static void part_reds(struct way *way, size_t steps) {
    /* A red parent is not the top, so there is one above it. */
    while (steps >= 2 && is_red(way->step[steps - 1].node)) {
        struct step above = way->step[steps - 2], parent = way->step[steps - 1];
        node_id uncle = D_RO(above.node)->children[1 - above.side];
        if (!is_red(uncle)) {
            if (parent.side != above.side) { /* to the outer side, by taking its parent's place */
                node_id raised = rotate(parent.node, above.side, 1);
                edit(above.node)->children[above.side] = raised;
            }
            hang(way, steps - 2, rotate(above.node, 1 - above.side, 1));
            return;
        }
        edit(parent.node)->red = 0;
        edit(uncle)->red = 0;
        steps -= 2;
        if (steps > 0)
            edit(above.node)->red = 1;
    }
}

static void redblack_insert(void *root, uint64_t key, uint64_t value) {
    struct way way;
    way.root = root;
    way.steps = 0;
    node_id known = find(&way, key);
    if (!TOID_IS_NULL(known)) {
        edit(known)->value = value;
        return;
    }
    node_id node = TX_NEW(struct redblack_node);
    struct redblack_node *fresh = D_RW(node);
    fresh->key = key;
    fresh->value = value;
    fresh->children[LESS] = TOID_NULL(struct redblack_node);
    fresh->children[GREATER] = TOID_NULL(struct redblack_node);
    fresh->red = way.steps > 0; /* only the top must be black */
    hang(&way, way.steps, node);
    part_reds(&way, way.steps);
}

/* Ways that begin as the noted one does meet one black node less than all others: gives them
 * another one. */
static void add_black(struct way *way) {
    while (way->steps > 0) {
        struct step step = way->step[--way->steps];
        node_id parent = step.node;
        size_t side = step.side, other = 1 - step.side;
        /* Not null: there are black nodes on its side. */
        node_id sibling = D_RO(parent)->children[other];
        if (is_red(sibling)) {
            node_id node = rotate(parent, side, 1);
            hang(way, way->steps, node);
            note(way, node, side);
            sibling = D_RO(parent)->children[other]; /* a child of the red one */
        }
        node_id near = D_RO(sibling)->children[side];
        node_id outer = D_RO(sibling)->children[other];
        if (!is_red(near) && !is_red(outer)) {
            edit(sibling)->red = 1;
            if (is_red(parent)) {
                edit(parent)->red = 0;
                return;
            }
            continue; /* one is missing on both sides now: below the parent */
        }
        if (!is_red(outer)) {
            node_id raised = rotate(sibling, other, 1);
            edit(parent)->children[other] = raised;
            outer = sibling;
        }
        edit(outer)->red = 0;
        hang(way, way->steps, rotate(parent, side, 0));
        return;
    }
}

static bool redblack_remove(void *root, uint64_t key) {
    struct way way;
    way.root = root;
    way.steps = 0;
    node_id node = find(&way, key);
    if (TOID_IS_NULL(node))
        return false;
    node_id gone = node;
    if (!TOID_IS_NULL(D_RO(node)->children[LESS]) && !TOID_IS_NULL(D_RO(node)->children[GREATER])) {
        /* The next greater entry moves here, and its node goes: it has no lesser child. */
        note(&way, node, GREATER);
        gone = D_RO(node)->children[GREATER];
        while (!TOID_IS_NULL(D_RO(gone)->children[LESS])) {
            note(&way, gone, LESS);
            gone = D_RO(gone)->children[LESS];
        }
        struct redblack_node *changed = edit(node);
        changed->key = D_RO(gone)->key;
        changed->value = D_RO(gone)->value;
    }
    const struct redblack_node *seen = D_RO(gone);
    node_id heir = seen->children[TOID_IS_NULL(seen->children[LESS]) ? GREATER : LESS];
    uint64_t red = seen->red;
    hang(&way, way.steps, heir);
    TX_FREE(gone);
    if (red == 0) {
        if (TOID_IS_NULL(heir))
            add_black(&way);
        else
            edit(heir)->red = 0; /* an only child is red */
    }
    return true;
}

static const uint64_t *redblack_find(const void *at, uint64_t key) {
    const struct redblack_root *root = at;
    node_id node = root->top;
    while (!TOID_IS_NULL(node)) {
        const struct redblack_node *seen = D_RO(node);
        if (seen->key == key)
            return &seen->value;
        node = seen->children[seen->key < key];
    }
    return NULL;
}

/* How many black nodes each way down meets. */
static size_t walk_below(node_id node, struct numbers_walk *walk) {
    if (TOID_IS_NULL(node))
        return 0;
    const struct redblack_node *seen = D_RO(node);
    size_t less = walk_below(seen->children[LESS], walk);
    numbers_visit(walk, seen->key, seen->value);
    size_t greater = walk_below(seen->children[GREATER], walk);
    bool red_below = is_red(seen->children[LESS]) || is_red(seen->children[GREATER]);
    if (less != greater || (seen->red != 0 && red_below))
        numbers_unsound(walk);
    return less + (seen->red == 0);
}

static void redblack_walk(const void *at, struct numbers_walk *walk) {
    const struct redblack_root *root = at;
    walk_below(root->top, walk);
    if (is_red(root->top))
        numbers_unsound(walk);
}

const struct numbers_map numbers_redblack = {
    sizeof(struct redblack_root), redblack_insert, redblack_remove, redblack_find, redblack_walk,
};
