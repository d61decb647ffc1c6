/* Sections that no lock guards: one in another, in several functions, beside locks in any order. */
#include "simulated.h"

struct node {
    struct node *next;
    uint64_t value;
};
struct root {
    pthread_mutex_t lock, other;
    struct node *stack;
    uint64_t pushed, sum, numbers[16];
};

__attribute__((noinline)) static void push(struct root *root, uint64_t value) {
    durum_durable_begin();
    struct node *node = nv_malloc(sizeof *node);
    node->value = value;
    node->next = root->stack;
    root->stack = node;
    root->pushed++;
    durum_durable_end();
}

/* A region whose calls are regions; what comes behind the last of them belongs to it, too. */
__attribute__((noinline)) static void push_both(struct root *root, uint64_t value) {
    durum_durable_begin();
    push(root, value);
    root->sum += root->pushed;
    push(root, 3 * value);
    root->sum += root->stack->value;
    durum_durable_end();
}

__attribute__((noinline)) static void enter(struct root *root, int depth) {
    for (int i = 0; i < depth; i++)
        durum_durable_begin();
    root->pushed += depth;
}
__attribute__((noinline)) static void leave(struct root *root, int depth) {
    root->sum += 7 * root->pushed;
    for (int i = 0; i < depth; i++) {
        root->numbers[i] += root->sum;
        durum_durable_end();
    }
}

__attribute__((noinline)) static void turn(struct root *root, int by) {
    enter(root, by);
    for (int i = 0; i < 16; i++)
        root->numbers[i] = root->numbers[(i + by) % 16] + 1;
    leave(root, by);
}

/* Whether it is in a section when it has entered is known to the caller only, and it goes straight on. */
__attribute__((noinline)) static void pass(struct root *root, int depth) {
    enter(root, depth);
    root->sum += root->numbers[depth];
    leave(root, depth);
}

/* The lock goes first, or the region. */
__attribute__((noinline)) static void cross(struct root *root, int number) {
    if (number % 2)
        durum_durable_begin();
    pthread_mutex_lock(&root->lock);
    root->sum += root->pushed;
    pthread_mutex_lock(&root->other);
    durum_durable_begin();
    root->pushed += root->sum;
    pthread_mutex_unlock(&root->lock);
    root->sum ^= root->pushed;
    durum_durable_end();
    root->numbers[number % 16] += root->sum;
    pthread_mutex_unlock(&root->other);
    if (number % 2) {
        root->numbers[3] += root->numbers[number % 16];
        durum_durable_end();
    }
}

/* One word, and a word of which the region around is told more. */
__attribute__((noinline)) static void set(struct root *root, uint64_t value) {
    durum_durable_begin();
    root->numbers[5] = value;
    durum_durable_end();
}
__attribute__((noinline)) static void set_twice(struct root *root, uint64_t value) {
    durum_durable_begin();
    set(root, root->numbers[5] + value);
    root->sum += root->numbers[5];
    durum_durable_end();
}

const int operations = 40;

void init(struct root *root) {
    for (int i = 0; i < 16; i++)
        root->numbers[i] = i;
}

void operate(struct root *root, int number) {
    switch (number % 7) {
    case 0:
        return push(root, number);
    case 1:
        return push_both(root, number);
    case 2:
        return turn(root, 1 + number / 14);
    case 3:
        return set(root, number);
    case 4:
        return set_twice(root, number);
    case 5:
        return pass(root, 1 + number / 14);
    default:
        return cross(root, number / 7);
    }
}

uint64_t digest(const struct root *root) {
    uint64_t sum = 31 * root->pushed + root->sum;
    for (int i = 0; i < 16; i++)
        sum = 31 * sum + root->numbers[i];
    for (const struct node *node = root->stack; node; node = node->next)
        sum = 31 * sum + node->value;
    return sum;
}
