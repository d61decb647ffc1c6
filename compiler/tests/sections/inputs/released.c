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

const int operations = 24;

void init(struct root *root) { root->sum = 1; }

void operate(struct root *root, int number) {
    int is_held = 1;
    pthread_mutex_lock(&root->lock);
    root->numbers[number % 8] += number;
    root->sum += root->numbers[(number + 1) % 8];
    if (number % 3)
        let_go(root, &is_held);
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
