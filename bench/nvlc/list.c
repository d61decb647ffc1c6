/* A linked list is walked: read, and written without transactions. Its nodes lie in a row, in
 * another order than that of the list, as plain C has them too; those of `list_apart` are
 * allocations of their own, which in NVM have a header each. Work is counted in walks. */
#include "kernel.h"

struct node {
    nvl struct node *next;
    uint64_t value;
};

struct lists {
    nvl struct node *row;
    nvl struct node *first;
    nvl struct node *apart;
};

const char *const rows[] = {"list_read", "list_write", "list_apart", NULL};
static nvl struct lists *lists;
static long length;
static uint64_t found;

/* Puts the nodes of a row into the order of `random_at`. */
static nvl struct node *link_row(nvl struct node *row, long size, long *order) {
    for (long at = 0; at < size; ++at)
        order[at] = at;
    for (long at = size - 1; at > 0; --at) {
        long other = (long)(random_at((uint64_t)at) % (uint64_t)(at + 1)), kept = order[at];
        order[at] = order[other];
        order[other] = kept;
    }
    for (long at = 0; at + 1 < size; ++at)
        row[order[at]].next = &row[order[at + 1]];
    return &row[order[0]];
}

void set_up(nvl_heap_t *heap, long size) {
    long *order = malloc((size_t)size * sizeof *order);
    if (!order)
        exit(1);
    length = size;
    lists = nvl_alloc_nv(heap, 1, struct lists);
    nvl_set_root(heap, lists);
    nvl struct node *row = nvl_alloc_nv(heap, size, struct node);
    nvl struct node *first = link_row(row, size, order);
    lists->row = row;
    lists->first = first;
    nvl struct node *apart = NULL;
    for (long at = 0; at < size; ++at) {
        nvl struct node *made = nvl_alloc_nv(heap, 1, struct node);
        made->value = (uint64_t)at;
        made->next = apart;
        apart = made;
    }
    lists->apart = apart;
    free(order);
}

void reset(void) {
    nvl struct node *row = lists->row;
    for (long at = 0; at < length; ++at)
        row[at].value = (uint64_t)at;
}

static uint64_t sum_of(nvl const struct node *node) {
    uint64_t sum = 0;
    for (; node; node = node->next)
        sum = sum * 3 + node->value;
    return sum;
}

static void add(nvl struct node *node, uint64_t number) {
    for (; node; node = node->next)
        node->value += number;
    WROTE_ROW(lists->row, length);
    DURABLE();
}

void run(nvl_heap_t *heap, int row, long work) {
    (void)heap;
    found = 0;
    for (long walk = 0; walk < work; ++walk) {
        if (row == 1)
            add(lists->first, (uint64_t)walk);
        else
            found += sum_of(row == 0 ? lists->first : lists->apart);
    }
}

double answer(int row) {
    return (double)(row == 1 ? sum_of(lists->first) : found);
}
