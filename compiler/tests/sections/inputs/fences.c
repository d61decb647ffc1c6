/* Operations whose fences are counted. */
#include "simulated.h"

struct node {
    pthread_mutex_t lock;
    struct node *next;
    uint64_t key, value;
};
struct root {
    pthread_mutex_t lock, last_lock;
    struct node *stack, *first, *last;
    struct node list;
    uint64_t pushed, words[16], table[64];
};

/* As nv.h will declare it. */
void *nv_malloc(size_t size) __attribute__((malloc));

static void push(struct root *root, uint64_t value) {
    pthread_mutex_lock(&root->lock);
    struct node *node = nv_malloc(sizeof *node);
    node->value = value;
    node->next = root->stack;
    root->stack = node;
    root->pushed++;
    pthread_mutex_unlock(&root->lock);
}

static uint64_t pop(struct root *root) {
    uint64_t value = 0;
    pthread_mutex_lock(&root->lock);
    struct node *node = root->stack;
    if (node) {
        value = node->value;
        root->stack = node->next;
        root->pushed--;
    }
    pthread_mutex_unlock(&root->lock);
    return value;
}

static void put(struct root *root, uint64_t value) {
    pthread_mutex_lock(&root->last_lock);
    struct node *node = nv_malloc(sizeof *node);
    node->value = value;
    node->next = NULL;
    root->last->next = node;
    root->last = node;
    pthread_mutex_unlock(&root->last_lock);
}

static uint64_t get(struct root *root) {
    uint64_t value = 0;
    pthread_mutex_lock(&root->lock);
    struct node *next = root->first->next;
    if (next) {
        value = next->value;
        root->first = next;
    }
    pthread_mutex_unlock(&root->lock);
    return value;
}

/* A map of fixed size: one aligned word. */
static void set(struct root *root, uint64_t key, uint64_t value) {
    pthread_mutex_lock(&root->lock);
    root->table[key % 64] = value;
    pthread_mutex_unlock(&root->lock);
}

static uint64_t look_up(struct root *root, uint64_t key) {
    pthread_mutex_lock(&root->lock);
    uint64_t value = root->table[key % 64];
    pthread_mutex_unlock(&root->lock);
    return value;
}

static void store_all(struct root *root, uint64_t value) {
    pthread_mutex_lock(&root->lock);
    for (int i = 0; i < 16; i++)
        root->words[i] = value + i;
    pthread_mutex_unlock(&root->lock);
}

static void add_all(struct root *root, uint64_t value) {
    pthread_mutex_lock(&root->lock);
    for (int i = 0; i < 16; i++)
        root->words[i] += value + i;
    pthread_mutex_unlock(&root->lock);
}

static void insert(struct root *root, uint64_t key) {
    struct node *before = &root->list;
    pthread_mutex_lock(&before->lock);
    while (before->next && before->next->key < key) {
        struct node *next = before->next;
        pthread_mutex_lock(&next->lock);
        pthread_mutex_unlock(&before->lock);
        before = next;
    }
    struct node *node = nv_malloc(sizeof *node);
    node->key = key;
    node->next = before->next;
    before->next = node;
    pthread_mutex_unlock(&before->lock);
}

const int operations = 60;

void init(struct root *root) {
    root->first = root->last = nv_malloc(sizeof *root->first);
    root->first->next = NULL;
}

void operate(struct root *root, int number) {
    switch (number) {
    case 0:
        return push(root, number);
    case 1:
        pop(root);
        return;
    case 2:
        return put(root, number);
    case 3:
        get(root);
        return;
    case 4:
        return set(root, number, 7);
    case 5:
        look_up(root, 4);
        return;
    case 6:
        return store_all(root, number);
    case 7:
        return add_all(root, number);
    default:
        return insert(root, (7 * number) % 60);
    }
}

uint64_t digest(const struct root *root) {
    uint64_t sum = root->pushed + root->table[4];
    for (int i = 0; i < 16; i++)
        sum = 31 * sum + root->words[i];
    for (const struct node *node = root->list.next; node; node = node->next)
        sum = 31 * sum + node->key;
    return sum;
}
