/* The linked list: examples/rust/src/bin/list_durum.rs, used at its head. */
#include "../pool.h"
#include "programs.h"

struct stack_node {
    uint64_t value;
    TOID(struct stack_node) next;
};

struct stack_root {
    TOID(struct stack_node) head;
    uint64_t length;
};

struct peer_stack {
    struct pool pool;
    struct stack_root *root;
};

struct peer_stack *peer_stack_open(const char *path, size_t pool_size) {
    struct peer_stack *stack = calloc(1, sizeof(*stack));
    if (stack == NULL || pool_create(&stack->pool, path, pool_size) != 0) {
        free(stack);
        return NULL;
    }
    stack->root = pmemobj_direct(pmemobj_root(stack->pool.pop, sizeof(struct stack_root)));
    if (stack->root == NULL) {
        peer_stack_close(stack);
        return NULL;
    }
    return stack;
}

void peer_stack_close(struct peer_stack *stack) {
    if (stack != NULL)
        pool_remove(&stack->pool);
    free(stack);
}

static int push(struct peer_stack *stack, uint64_t value) {
    int result = 0;
    TX_BEGIN(stack->pool.pop) {
        struct stack_root *root = stack->root;
        TOID(struct stack_node) node = TX_NEW(struct stack_node);
        D_RW(node)->value = value;
        D_RW(node)->next = root->head;
        TX_ADD_DIRECT(root); /* head and length lie side by side: one snapshot */
        root->head = node;
        root->length++;
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

static int pop(struct peer_stack *stack) {
    int result = 0;
    TX_BEGIN(stack->pool.pop) {
        struct stack_root *root = stack->root;
        TOID(struct stack_node) node = root->head;
        TX_ADD_DIRECT(root);
        root->head = D_RO(node)->next;
        root->length--;
        TX_FREE(node);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_stack_push(struct peer_stack *stack, const uint64_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (push(stack, values[i]) != 0)
            return -1;
    }
    return 0;
}

struct peer_walk peer_stack_sum(struct peer_stack *stack) {
    struct peer_walk walk = {0, 0, 1};
    TOID(struct stack_node) node = stack->root->head;
    while (!TOID_IS_NULL(node)) {
        walk.sum += D_RO(node)->value;
        walk.count++;
        node = D_RO(node)->next;
    }
    return walk;
}

int peer_stack_pop(struct peer_stack *stack, size_t count, uint64_t *sum) {
    for (size_t i = 0; i < count && !TOID_IS_NULL(stack->root->head); i++) {
        *sum += D_RO(stack->root->head)->value;
        if (pop(stack) != 0)
            return -1;
    }
    return 0;
}
