/* A stack under one lock. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack_node;

struct stack {
    pthread_mutex_t lock;
    struct stack_node *top;
    size_t count;
};

void stack_begin(struct stack *stack);

/* Frees all that is left. Nobody else may use the stack. */
void stack_end(struct stack *stack);

/* False: there is no memory. */
bool stack_push(struct stack *stack, uint64_t value);

/* False: the stack is empty. */
bool stack_pop(struct stack *stack, uint64_t *value);
