/* A loop whose vectors store some of their parts: AVX2 has an instruction for that. */
#include "simulated.h"

struct root {
    pthread_mutex_t lock;
    uint64_t from[64], to[64];
};

__attribute__((noinline)) static void choose(struct root *root, uint64_t by) {
    pthread_mutex_lock(&root->lock);
    for (int i = 0; i < 64; i++)
        if (root->from[i] & 1)
            root->to[i] = root->from[i] + by;
    pthread_mutex_unlock(&root->lock);
}

void init(struct root *root) {
    for (int i = 0; i < 64; i++)
        root->from[i] = i * i * 7 % 5;
}

const int operations = 4;

void operate(struct root *root, int number) { choose(root, number); }

uint64_t digest(const struct root *root) {
    uint64_t sum = 0;
    for (int i = 0; i < 64; i++)
        sum = 31 * sum + root->to[i];
    return sum;
}
