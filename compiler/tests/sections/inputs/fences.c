/* Operations whose fences are counted. */
#include "list.h"

struct item {
    struct item *next;
    uint64_t value;
};
struct root {
    pthread_mutex_t lock, last_lock;
    struct item *stack, *first, *last;
    struct node list;
    uint64_t pushed, words[16], table[64];
};

static void push(struct root *root, uint64_t value) {
    pthread_mutex_lock(&root->lock);
    struct item *item = nv_malloc(sizeof *item);
    item->value = value;
    item->next = root->stack;
    root->stack = item;
    root->pushed++;
    pthread_mutex_unlock(&root->lock);
}

static uint64_t pop(struct root *root) {
    uint64_t value = 0;
    pthread_mutex_lock(&root->lock);
    struct item *item = root->stack;
    if (item) {
        value = item->value;
        root->stack = item->next;
        root->pushed--;
    }
    pthread_mutex_unlock(&root->lock);
    return value;
}

static void put(struct root *root, uint64_t value) {
    pthread_mutex_lock(&root->last_lock);
    struct item *item = nv_malloc(sizeof *item);
    item->value = value;
    __atomic_store_n(&item->next, NULL, __ATOMIC_SEQ_CST);
    __atomic_store_n(&root->last->next, item, __ATOMIC_RELEASE);
    root->last = item;
    pthread_mutex_unlock(&root->last_lock);
}

static uint64_t get(struct root *root) {
    uint64_t value = 0;
    pthread_mutex_lock(&root->lock);
    struct item *first = root->first;
    struct item *next = __atomic_load_n(&first->next, __ATOMIC_ACQUIRE);
    if (next) {
        value = next->value;
        root->first = next;
        nv_free(first);
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

/* Variables that last are no part of anything else: what is read of them may be read before items change. */
static durum_durable struct item *newest;
static durum_durable uint64_t linked;

static void link_item(struct root *root, struct item *item) {
    pthread_mutex_lock(&root->lock);
    item->value += 3;
    item->next = newest;
    newest = item;
    linked++;
    pthread_mutex_unlock(&root->lock);
}

static void insert(struct root *root, uint64_t key) {
    struct node *before = find(&root->list, key);
    put_behind(before, nv_malloc(sizeof *before), key);
    pthread_mutex_unlock(&before->lock);
}

const int operations = 61;

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
    case 8:
        return link_item(root, root->last);
    default:
        return insert(root, (7 * number) % 60);
    }
}

uint64_t digest(const struct root *root) {
    uint64_t sum = root->pushed + root->table[4] + linked + (newest ? newest->value : 0);
    for (int i = 0; i < 16; i++)
        sum = 31 * sum + root->words[i];
    for (const struct node *node = root->list.next; node; node = node->next)
        sum = 31 * sum + node->key;
    return sum;
}
