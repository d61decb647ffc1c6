/* Sections that end in a function which goes on behind the release, as its caller does. */
#include "simulated.h"

struct root {
    pthread_mutex_t lock;
    uint64_t numbers[8], sum;
};

static __attribute__((noinline)) void let_go(struct root *root, int *is_held) {
    pthread_mutex_unlock(&root->lock);
    *is_held = 0;
}

static __attribute__((noinline)) void change(struct root *root, uint64_t value, int *is_held) {
    root->numbers[value % 8] += value;
    root->sum += root->numbers[(value + 1) % 8];
    if (value % 3)
        let_go(root, is_held);
}

const int operations = 24;

void init(struct root *root) { root->sum = 1; }

void operate(struct root *root, int number) {
    int is_held = 1;
    pthread_mutex_lock(&root->lock);
    change(root, number, &is_held);
    if (!is_held)
        return;
    root->sum = 3 * root->sum + number;
    pthread_mutex_unlock(&root->lock);
}

uint64_t digest(const struct root *root) {
    uint64_t sum = root->sum;
    for (int i = 0; i < 8; i++)
        sum = 31 * sum + root->numbers[i];
    return sum;
}
