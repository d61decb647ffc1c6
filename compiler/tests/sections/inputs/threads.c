/* A sorted list whose nodes have locks: threads insert hand over hand, and count under a lock of its own. */
#include "list.h"

struct root {
    struct node head;
    pthread_mutex_t counting;
    uint64_t count, sum;
};

const int operations = 48;
const int threads = 4;

static uint64_t key_of(int number) { return (uint64_t)(number * 37) % 101; }

static void insert(struct root *root, uint64_t key) {
    struct node *before = find(&root->head, key);
    put_behind(before, nv_malloc(sizeof *before), key);
    pthread_mutex_lock(&root->counting);
    root->count++;
    root->sum += key;
    pthread_mutex_unlock(&root->counting);
    pthread_mutex_unlock(&before->lock);
}

void init(struct root *root) { root->count = 0; }

void operate(struct root *root, int number) { insert(root, key_of(number)); }

/* Sorted, each at most once, and the counts are those of the nodes. */
const char *examine(const struct root *root, const int *is_done) {
    uint64_t count = 0, sum = 0, last = 0;
    uint64_t seen[2] = {0, 0};
    for (const struct node *node = root->head.next; node; node = node->next) {
        if (node->key < last)
            return "the list is not sorted";
        if (node->key > 100 || seen[node->key / 64] >> node->key % 64 & 1)
            return "a key is there that was not inserted";
        seen[node->key / 64] |= 1ull << node->key % 64;
        last = node->key, sum += node->key;
        if (++count > (uint64_t)operations)
            return "the list has no end";
    }
    if (count != root->count || sum != root->sum)
        return "the counts are wrong";
    for (int i = 0; i < operations; i++) {
        uint64_t key = key_of(i);
        if (is_done[i] && !(seen[key / 64] >> key % 64 & 1))
            return "what was inserted is not there";
    }
    return NULL;
}

uint64_t digest(const struct root *root) { return root->sum; }
