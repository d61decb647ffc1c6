/* A stack of values. Each thread pushes two values and takes one, then the other way round. */
#include "kernel.h"

struct stack_node {
    struct stack_node *below;
    uint64_t value;
};

struct stack {
    pthread_mutex_t lock;
    struct stack_node *top;
    uint64_t count;
};

const struct row rows[] = {{"stack", 1}, {"stack_2", 2}, {NULL, 0}};

/* What a section uses is an argument: a variable of the program is gone when the section goes on.
 */
static struct stack *the_stack;

static void push(struct stack *stack, uint64_t value) {
    pthread_mutex_lock(&stack->lock);
    BEGIN(&stack->lock);
    struct stack_node *node = NEW(struct stack_node);
    INIT(node->value, value);
    INIT(node->below, stack->top);
    SET(stack->top, node);
    SET(stack->count, stack->count + 1);
    COMMIT();
    pthread_mutex_unlock(&stack->lock);
}

static uint64_t pop(struct stack *stack) {
    uint64_t value = 0;
    pthread_mutex_lock(&stack->lock);
    struct stack_node *node = stack->top;
    if (node) {
        BEGIN(&stack->lock);
        value = node->value;
        SET(stack->top, node->below);
        SET(stack->count, stack->count - 1);
        DROP(node);
        COMMIT();
    }
    pthread_mutex_unlock(&stack->lock);
    return value;
}

/* Of what was taken, by all threads. */
static atomic_ullong taken;

void set_up(long size) {
    (void)size;
    the_stack = memory_root(sizeof *the_stack);
    pthread_mutex_init(&the_stack->lock, NULL);
}

void prepare(int row) {
    (void)row;
    while (the_stack->top)
        pop(the_stack);
    atomic_store(&taken, 0);
}

void run(int row, int thread, int threads, long operations) {
    struct stack *stack = the_stack;
    uint64_t sum = 0;
    (void)row;
    for (long i = 0; i + 6 <= operations; i += 6) {
        uint64_t value = (uint64_t)i * (uint64_t)threads + (uint64_t)thread;
        push(stack, value);
        push(stack, value + 1);
        sum += pop(stack);
        push(stack, value + 2);
        sum += pop(stack);
        sum += pop(stack);
    }
    atomic_fetch_add(&taken, sum);
}

uint64_t answer(int row) {
    uint64_t sum = atomic_load(&taken) + the_stack->count;
    (void)row;
    for (struct stack_node *node = the_stack->top; node; node = node->below)
        sum += node->value;
    return sum;
}
