/* Sections of one thread: each operation is one. */
#include "simulated.h"

#include <string.h>

struct node {
    struct node *next;
    uint64_t value;
};
struct root {
    pthread_mutex_t lock, counting;
    struct node *stack;
    struct node *first, *last;
    uint64_t pushed, popped, sum;
    uint64_t numbers[40];
    double sums[16];
    unsigned char bytes[96];
    struct node *tree[16];
};

__attribute__((noinline)) static void push(struct root *root, uint64_t value) {
    pthread_mutex_lock(&root->lock);
    struct node *node = nv_malloc(sizeof *node);
    node->value = value;
    node->next = root->stack;
    root->stack = node;
    root->pushed++;
    pthread_mutex_unlock(&root->lock);
}

__attribute__((noinline)) static void pop(struct root *root) {
    pthread_mutex_lock(&root->lock);
    struct node *node = root->stack;
    if (node) {
        root->stack = node->next;
        pthread_mutex_lock(&root->counting);
        root->popped++;
        pthread_mutex_unlock(&root->counting);
        root->sum = 31 * root->sum + node->value;
        nv_free(node);
    }
    pthread_mutex_unlock(&root->lock);
}

/* Takes the place of the first one, which is read behind its end. */
__attribute__((noinline)) static void replace(struct root *root) {
    pthread_mutex_lock(&root->lock);
    struct node *old = root->first;
    nv_free(old);
    struct node *node = nv_malloc(sizeof *node);
    root->pushed += 2;
    *node = *old;
    node->value++;
    if (root->last == old)
        root->last = node;
    root->first = node;
    pthread_mutex_unlock(&root->lock);
}

__attribute__((noinline)) static void put(struct root *root, uint64_t value) {
    pthread_mutex_lock(&root->lock);
    struct node *node = nv_malloc(sizeof *node);
    node->value = value;
    node->next = NULL;
    if (root->last)
        root->last->next = node;
    else
        root->first = node;
    root->last = node;
    pthread_mutex_unlock(&root->lock);
}

__attribute__((noinline)) static void shift(struct root *root, int by) {
    pthread_mutex_lock(&root->lock);
    for (int i = by; i < 40; i++)
        root->numbers[i - by] = root->numbers[i] + 1;
    pthread_mutex_unlock(&root->lock);
}

/* What one turn reads, the next one overwrites; neither does both. */
__attribute__((noinline)) static void shift_by_one(struct root *root) {
    pthread_mutex_lock(&root->lock);
    for (int i = 0; i < 39; i++)
        root->numbers[i] = 3 * root->numbers[i + 1] + i;
    pthread_mutex_unlock(&root->lock);
}

__attribute__((noinline)) static void reverse(struct root *root) {
    pthread_mutex_lock(&root->lock);
    for (int i = 0, j = 39; i < j; i++, j--) {
        uint64_t number = root->numbers[i];
        root->numbers[i] = root->numbers[j];
        root->numbers[j] = number;
    }
    pthread_mutex_unlock(&root->lock);
}

__attribute__((noinline)) static void smooth(struct root *root, double factor) {
    pthread_mutex_lock(&root->lock);
    double last = 1;
    for (int i = 0; i < 16; i++) {
        last = factor * last + root->sums[i];
        root->sums[i] = last;
    }
    pthread_mutex_unlock(&root->lock);
}

/* A local array, of which a part was written before the section. */
__attribute__((noinline)) static uint64_t collect(struct root *root, int kind) {
    uint64_t found[8];
    for (int i = 0; i < 8; i++)
        found[i] = 1000 * i + kind;
    if (pthread_mutex_trylock(&root->lock) != 0)
        return 0;
    for (int i = 0; i < 8; i += 2)
        found[(i * kind) % 8] += root->numbers[8 * (kind % 4) + i];
    for (int i = 1; i < 8; i++)
        found[i] += 3 * found[(i * kind) % i];
    for (int i = 0; i < 8; i++)
        root->sum = 31 * root->sum + found[i];
    pthread_mutex_unlock(&root->lock);
    return found[0];
}

/* Copies that overlap, and a struct by value. */
struct point {
    uint64_t x[5];
};
__attribute__((noinline)) static uint64_t add(struct point point, struct root *root) {
    uint64_t sum = 0;
    for (int i = 0; i < 5; i++) {
        root->numbers[i] += point.x[i];
        sum += root->numbers[i];
    }
    return sum;
}
__attribute__((noinline)) static void move(struct root *root, size_t by, size_t size) {
    struct point point = {{1, 2, 3, 4, by}};
    pthread_mutex_lock(&root->lock);
    memmove(root->bytes, root->bytes + by, size);
    root->sum += add(point, root);
    memmove(root->bytes + by, root->bytes, size);
    pthread_mutex_unlock(&root->lock);
}

/* What a plain caller has on its stack, written in the middle of a section, also by who is called. */
__attribute__((noinline)) static void tell(struct root *root, uint64_t *told) {
    root->popped = 5 * root->popped + 1;
    *told = root->popped;
    root->pushed += 3;
}
__attribute__((noinline)) static void exchange(struct root *root, uint64_t *told, uint64_t *other) {
    pthread_mutex_lock(&root->lock);
    uint64_t before = *other;
    root->sum += before;
    *other = root->sum;
    tell(root, told);
    root->sum ^= root->pushed;
    pthread_mutex_unlock(&root->lock);
}

/* A tree of calls in one section, which begins in one function and ends in another one. */
__attribute__((noinline)) static void enter(struct root *root) {
    pthread_mutex_lock(&root->lock);
    root->pushed++;
}
__attribute__((noinline)) static void leave(struct root *root) {
    root->popped++;
    pthread_mutex_unlock(&root->lock);
}
__attribute__((noinline)) static uint64_t insert(struct root *root, unsigned place, uint64_t value, int depth) {
    if (depth == 0) {
        struct node *node = nv_malloc(sizeof *node);
        node->value = value;
        node->next = root->tree[place];
        root->tree[place] = node;
        return 1;
    }
    root->numbers[depth] ^= value;
    uint64_t left = insert(root, 2 * place % 16, value + 1, depth - 1);
    root->numbers[depth] += left;
    uint64_t right = insert(root, (2 * place + 1) % 16, value + 2, depth - 1);
    root->numbers[depth] += 3 * right;
    return left + right + 1;
}
__attribute__((noinline)) static void grow(struct root *root, uint64_t value) {
    enter(root);
    uint64_t made = insert(root, value % 16, value, 3);
    root->sum += made * value;
    leave(root);
}

void init(struct root *root) {
    for (int i = 0; i < 40; i++)
        root->numbers[i] = i * i;
    for (int i = 0; i < 16; i++)
        root->sums[i] = 1.0 / (i + 1);
    for (int i = 0; i < 96; i++)
        root->bytes[i] = 7 * i;
}

const int operations = 52;

void operate(struct root *root, int number) {
    switch (number % 13) {
    case 0:
    case 5:
        return push(root, number);
    case 1:
        return pop(root);
    case 2:
        return put(root, number);
    case 3:
        return shift(root, number / 12 + 1);
    case 4:
        return reverse(root);
    case 6:
        return smooth(root, 0.5);
    case 7:
        collect(root, number / 12 + 1);
        return;
    case 8:
        return move(root, 1 + number / 12, 20 + number);
    case 9:
        return grow(root, number);
    case 10:
        return shift_by_one(root);
    case 12:
        return replace(root);
    case 11: {
        uint64_t told = 0, other = number;
        return exchange(root, &told, &other);
    }
    }
}

static uint64_t mix(uint64_t sum, uint64_t value) { return (sum ^ value) * 0x9e3779b97f4a7c15u + 1; }
static uint64_t mix_list(uint64_t sum, const struct node *node) {
    for (; node; node = node->next)
        sum = mix(sum, node->value);
    return mix(sum, 0);
}

static uint64_t count(const struct node *node) {
    uint64_t nodes = 0;
    for (; node; node = node->next)
        nodes++;
    return nodes;
}
uint64_t known_objects(const struct root *root) {
    uint64_t nodes = count(root->stack) + count(root->first);
    for (int i = 0; i < 16; i++)
        nodes += count(root->tree[i]);
    return nodes;
}

uint64_t digest(const struct root *root) {
    uint64_t sum = mix_list(mix_list(1, root->stack), root->first);
    sum = mix(mix(mix(sum, root->pushed), root->popped), root->sum);
    for (int i = 0; i < 40; i++)
        sum = mix(sum, root->numbers[i]);
    for (int i = 0; i < 16; i++) {
        uint64_t bits;
        memcpy(&bits, &root->sums[i], 8);
        sum = mix(sum, bits);
        sum = mix_list(sum, root->tree[i]);
    }
    for (int i = 0; i < 96; i++)
        sum = mix(sum, root->bytes[i]);
    return sum;
}
