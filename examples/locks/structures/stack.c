#include "stack.h"

#include <stdlib.h>

struct stack_node {
    struct stack_node *below;
    uint64_t value;
};

void stack_begin(struct stack *stack) {
    pthread_mutex_init(&stack->lock, NULL);
    stack->top = NULL;
    stack->count = 0;
}

void stack_end(struct stack *stack) {
    uint64_t value;
    while (stack_pop(stack, &value))
        ;
    pthread_mutex_destroy(&stack->lock);
}

bool stack_push(struct stack *stack, uint64_t value) {
    struct stack_node *node = malloc(sizeof *node);
    if (!node)
        return false;
    node->value = value;
    pthread_mutex_lock(&stack->lock);
    node->below = stack->top;
    stack->top = node;
    stack->count++;
    pthread_mutex_unlock(&stack->lock);
    return true;
}

bool stack_pop(struct stack *stack, uint64_t *value) {
    pthread_mutex_lock(&stack->lock);
    struct stack_node *node = stack->top;
    if (node) {
        stack->top = node->below;
        stack->count--;
    }
    pthread_mutex_unlock(&stack->lock);
    if (!node)
        return false;
    *value = node->value;
    free(node);
    return true;
}
