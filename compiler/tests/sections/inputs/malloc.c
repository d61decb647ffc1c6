/* A list whose nodes and names come from malloc, calloc, realloc and strdup; each run finds those of the runs before. Lines of
 * the C library's are freed in between, by the same free.
 *
 *   program - RUN
 */
#define _GNU_SOURCE
#include <nv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    char *name;
    int *numbers;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static durum_durable struct node *head;
static durum_durable int count;

static void add(const char *name, void (*give_back)(void *)) {
    give_back(malloc(10));
    pthread_mutex_lock(&lock);
    struct node *node = malloc(sizeof *node);
    node->name = strdup(name);
    node->numbers = calloc(2, sizeof *node->numbers);
    node->numbers[1] = 7;
    node->numbers = realloc(node->numbers, 1000 * sizeof *node->numbers);
    node->numbers[999] = count++;
    node->next = head;
    head = node;
    /* Taken and given back. */
    free(strdup(node->name));
    free(NULL);
    pthread_mutex_unlock(&lock);
}

static int is_whole(int expected) {
    for (struct node *node = head; node; node = node->next)
        if (node->numbers[999] != --expected || node->numbers[0] || node->numbers[1] != 7 ||
            strncmp(node->name, "run ", 4) || atoi(node->name + 4) != expected)
            return 0;
    return expected == 0;
}

int main(int argc, char **argv) {
    char *name = NULL;
    if (argc != 3 || asprintf(&name, "run %s", argv[2]) < 0)
        return 2;
#ifdef ALIGNED
    free(aligned_alloc(64, 64));
#endif
    /* Of the system's. */
    name = realloc(name, 100);
    int is_expected = is_whole(atoi(argv[2]));
    char own[16];
    strcpy(own, name);
    free(name);
    add(own, free);
    return !is_expected;
}
