/* One section, of C and C++. */
#include <pthread.h>
#ifdef __cplusplus
extern "C" {
#endif
#include "../../sections/inputs/simulated.h"

struct root {
    pthread_mutex_t lock;
    uint64_t number;
    volatile int seen;
};

const int operations = 3;

void init(struct root *root) { root->number = 0; }

void operate(struct root *root, int number) {
    pthread_mutex_lock(&root->lock);
    root->number = 2 * root->number + number;
#ifdef REFUSED
    root->seen = number;
#endif
    pthread_mutex_unlock(&root->lock);
}

uint64_t digest(const struct root *root) { return root->number; }
#ifdef __cplusplus
}
#endif
