/* Two threads whose sections are killed. What they have left is completed by the code that was linked beside the program,
 * while the program does not run.
 *
 *   program HEAP          works until it is killed
 *   program HEAP examine  whether all is there, each change as a whole
 *
 * Sections take locks in the heap, one of the program itself and none, and memory; a function that they call writes to
 * a local of its caller's. They have pointers to constants, functions and a lock of the program, which the code has
 * elsewhere.
 */
#include <nv.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef WORDS
#define WORDS 48
#endif
enum { NODES = 8 };

struct node {
    struct node *next;
    uint64_t value;
};
struct root {
    pthread_mutex_t lock;
    uint64_t words[WORDS];
    pthread_rwlock_t names;
    char name[2][64];
    struct node *list;
    uint64_t count;
    uint64_t alone[WORDS];
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

/* Its sum goes by a local with an address. */
__attribute__((noinline)) static void add(uint64_t *words, uint64_t *sum) {
    for (int i = 0; i < WORDS; i++) {
        words[i] += 1;
        *sum += words[i];
    }
}

/* Which words, and by whom, says the number. */
static void write_name(char *name, const char *words, unsigned long sum) {
    int at = snprintf(name, 32, "%lu ", sum);
    do
        name[at++] = *words;
    while (*words++);
}
static void write_again(char *name, const char *words, unsigned long sum) {
    int at = snprintf(name, 32, "%lu ", sum), i = 0;
    do
        name[at + i] = words[i];
    while (words[i++]);
}
static void (*const writers[2])(char *, const char *, unsigned long) = {write_name, write_again};
static const char *const words[2] = {"of them", "in all"};
static pthread_mutex_t name_locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void write_names(struct root *root, uint64_t sum) {
    const char *those = words[sum % 2];
    void (*const write)(char *, const char *, unsigned long) = writers[sum / 2 % 2];
    pthread_mutex_t *lock = &name_locks[sum % 2];
    pthread_rwlock_wrlock(&root->names);
    pthread_mutex_lock(lock);
    write(root->name[0], those, sum);
    write(root->name[1], those, sum);
    pthread_mutex_unlock(lock);
    pthread_rwlock_unlock(&root->names);
}

static void count(struct root *root) {
    uint64_t sum = 0;
    pthread_mutex_lock(&root->lock);
    add(root->words, &sum);
    write_names(root, sum);
    pthread_mutex_unlock(&root->lock);
}

static void count_alone(struct root *root) {
    uint64_t sum = 0;
    durum_durable_begin();
    add(root->alone, &sum);
    durum_durable_end();
}

static void push(struct root *root) {
    pthread_mutex_lock(&list_lock);
    struct node *node = nv_malloc(sizeof *node);
    node->value = root->list ? root->list->value + 1 : 1;
    node->next = root->list;
    root->list = node;
    if (root->count == NODES) {
        for (int i = 1; i < NODES; i++)
            node = node->next;
        nv_free(node->next);
        node->next = 0;
    } else {
        root->count++;
    }
    pthread_mutex_unlock(&list_lock);
}

static void *list_of(void *root) {
    for (;;)
        push(root);
}

static int examine(const struct root *root) {
    uint64_t sum = 0, nodes = 0;
    for (int i = 0; i < WORDS; i++) {
        sum += root->words[i];
        if (root->words[i] != root->words[0] || root->alone[i] != root->alone[0])
            return printf("words differ\n"), 1;
    }
    char name[64];
    write_name(name, words[sum % 2], sum);
    if (sum && (strcmp(name, root->name[0]) || strcmp(name, root->name[1])))
        return printf("names differ: %s, %s, %s\n", name, root->name[0], root->name[1]), 1;
    for (const struct node *node = root->list; node; node = node->next, nodes++)
        if (node->next && node->next->value + 1 != node->value)
            return printf("the list has a gap\n"), 1;
    if (nodes != root->count)
        return printf("%lu nodes of %lu\n", (unsigned long)nodes, (unsigned long)root->count), 1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2 || nv_open(argv[1]))
        return fprintf(stderr, "%s\n", nv_error()), 2;
    struct root *root = nv_root(sizeof *root);
    if (argc > 2)
        return examine(root);
    pthread_t thread;
    if (pthread_create(&thread, 0, list_of, root))
        return 2;
    for (;;) {
        count(root);
        count_alone(root);
    }
}
