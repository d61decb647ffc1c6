/* A heap of lists, rows, tails, `void *` and text, of which the store knows all types.
 *
 *   program build    makes it, if it is not there, and looks at all of it
 *   program churn    makes and frees objects, until it is killed
 *   program completed    looks at what that has left
 *   program leak     takes memory, and dies before anything leads there
 *   program astray   stores the address of a function
 *   program either   stores an object with a pointer in a union, of which nobody knows
 */
#include <nv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 100, ROW = 300 };

struct node {
    struct node *next;
    char *name;
    union {
        double real;
        long whole;
    } value;
#ifdef CHANGED
    long more;
#endif
};
struct tailed {
    long count;
    struct node *nodes[];
};
struct either {
    union {
        struct node *node;
        long number;
    };
};
struct all {
    pthread_mutex_t lock;
    struct node *list;
    struct node **row;
    struct tailed *tailed;
    void *any;
    void (*call)(void);
    struct either *either;
    char *text;
};

/* What was freed must not look like pointers when it is used again. */
static void leave_traces(void) {
    char *traces[64];
    for (int size = 16; size <= 4096; size *= 2) {
        for (int i = 0; i < 64; i++)
            memset(traces[i] = malloc(size * sizeof(char)), 0x5a, size);
        for (int i = 0; i < 64; i++)
            free(traces[i]);
    }
    struct node *nodes[64];
    for (int i = 0; i < 64; i++)
        memset(nodes[i] = malloc(sizeof **nodes), 0x5a, sizeof **nodes);
    for (int i = 0; i < 64; i++)
        free(nodes[i]);
}

static void add(struct all *all, int number) {
    char name[20];
    pthread_mutex_lock(&all->lock);
    /* Of some nodes no name is stored. */
    struct node *node = malloc(sizeof *node);
    node->value.whole = number;
    if (number % 2) {
        snprintf(name, sizeof name, "node %d", number);
        node->name = strdup(name);
    }
    node->next = all->list;
    all->list = node;
    pthread_mutex_unlock(&all->lock);
}

static void build(struct all *all) {
    leave_traces();
    for (int i = 0; i < NODES; i++)
        add(all, i);
    pthread_mutex_lock(&all->lock);
    all->row = calloc(ROW, sizeof *all->row);
    all->row[0] = all->list;
    all->row = realloc(all->row, 2 * ROW * sizeof *all->row);
    all->row[2 * ROW - 1] = all->list->next;
    all->tailed = malloc(sizeof *all->tailed + 3 * sizeof *all->tailed->nodes);
    all->tailed->count = 3;
    all->tailed->nodes[1] = malloc(2 * sizeof(struct node));
    all->tailed->nodes[1][1].next = all->list;
    all->text = malloc(100 * sizeof(char));
    memcpy(all->text, "text", 5);
    long *numbers = malloc(10 * sizeof(long));
    numbers[9] = 9;
    all->any = numbers;
    pthread_mutex_unlock(&all->lock);
}

static int is_whole(const struct all *all) {
    int expected = NODES;
    for (const struct node *node = all->list; node; node = node->next) {
        if (node->value.whole != --expected)
            return 0;
        if (expected % 2 && atoi(node->name + 5) != expected)
            return 0;
    }
    return expected == 0 && all->row[0] == all->list && all->row[2 * ROW - 1] == all->list->next &&
           all->tailed->nodes[1][1].next == all->list && !strcmp(all->text, "text") &&
           ((long *)all->any)[9] == 9;
}

/* After nodes came and went. */
static int is_connected(const struct all *all) {
    int count = 0;
    const struct node *last = NULL;
    for (const struct node *node = all->list; node; node = node->next, count++) {
        if (node->name && strcmp(node->name, "churned") && strncmp(node->name, "node ", 5))
            return 0;
        last = node;
    }
    return count >= 2 && last->value.whole == 0 && all->row[0] == all->list;
}

static void called(void) {}

/* Nodes come and go behind the first ones, for ever. */
static void churn(struct all *all) {
    for (unsigned i = 0;; i++) {
        pthread_mutex_lock(&all->lock);
        struct node *first = all->list;
        if (i % 7 < 4) {
            struct node *node = malloc(sizeof *node);
            if (i % 2)
                node->name = strdup("churned");
            node->next = first->next;
            first->next = node;
        } else if (first->next->next) {
            struct node *node = first->next;
            first->next = node->next;
            free(node->name);
            free(node);
        }
        pthread_mutex_unlock(&all->lock);
    }
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    struct all *all = nv_root(sizeof *all);
    if (!strcmp(argv[1], "build")) {
        if (!all->list)
            build(all);
        return !is_whole(all);
    }
    if (!strcmp(argv[1], "completed"))
        return !is_connected(all);
    if (!strcmp(argv[1], "leak")) {
        struct node *lost = malloc(sizeof *lost);
        lost->next = all->list;
        lost->name = strdup("lost");
        abort();
    }
    if (!strcmp(argv[1], "churn"))
        churn(all);
    pthread_mutex_lock(&all->lock);
    if (!strcmp(argv[1], "astray")) {
        all->call = called;
    } else {
        all->either = malloc(sizeof *all->either);
        all->either->node = all->list;
    }
    pthread_mutex_unlock(&all->lock);
}
