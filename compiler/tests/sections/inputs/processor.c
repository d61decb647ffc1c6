/* Functions for processors that have more than others: one that sections lead to, if that is wanted, and one that only
 * the program calls.
 */
#include <nv.h>
#include <pthread.h>

struct root {
    pthread_mutex_t lock;
    unsigned long number, bits;
};

__attribute__((noinline, target("popcnt"))) static unsigned long bits(unsigned long number) {
    return __builtin_popcountl(number);
}

__attribute__((noinline, target("avx512f"))) static int wide(int count) {
    return count * 3;
}

__attribute__((noinline)) static void count(struct root *root) {
    pthread_mutex_lock(&root->lock);
    root->number++;
#ifdef LEADS
    root->bits = bits(root->number);
#endif
    pthread_mutex_unlock(&root->lock);
}

int main(int argc, char **argv) {
    if (argc < 2 || nv_open(argv[1]))
        return 2;
    count(nv_root(sizeof(struct root)));
    return wide(argc) + (int)bits(argc);
}
