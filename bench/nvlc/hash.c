/* A hash table with chains. Keys are inserted, changed, read and deleted in random orders, each a
 * transaction. Work is counted in keys. */
#include "kernel.h"

struct entry {
    uint64_t key;
    uint64_t value;
    nvl struct entry *next;
};

struct table {
    long count;
    nvl struct entry *nvl *buckets;
};

const char *const rows[] = {"hash_insert", "hash_update", "hash_read", "hash_delete", NULL};
static nvl struct table *table;
static uint64_t bucket_count;
static uint64_t found;

void set_up(nvl_heap_t *heap, long size) {
    bucket_count = (uint64_t)size;
    table = nvl_alloc_nv(heap, 1, struct table);
    nvl_set_root(heap, table);
    table->buckets = nvl_alloc_nv(heap, size, nvl struct entry *);
}

/* The table is empty again after each run. */
void reset(void) {}

/* Where the pointer to the entry is, or would be. */
static nvl struct entry *nvl *link_to(uint64_t key) {
    nvl struct entry *nvl *link = &table->buckets[random_at(key) % bucket_count];
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    return link;
}

static void insert(nvl_heap_t *heap, uint64_t key) {
    nvl struct entry *nvl *link = link_to(key);
#pragma nvl atomic heap(heap)
    {
        nvl struct entry *made = nvl_alloc_nv(heap, 1, struct entry);
        made->key = key;
        made->value = key;
        *link = made;
        table->count++;
        WROTE(*made);
        WROTE(*link);
        WROTE(table->count);
    }
    DURABLE();
}

static void update(nvl_heap_t *heap, uint64_t key, uint64_t value) {
    nvl struct entry *entry = *link_to(key);
#pragma nvl atomic heap(heap)
    entry->value = value;
    WROTE(entry->value);
    DURABLE();
}

static void drop(nvl_heap_t *heap, uint64_t key) {
    nvl struct entry *nvl *link = link_to(key);
    nvl struct entry *gone = *link;
#pragma nvl atomic heap(heap)
    {
        *link = gone->next;
        table->count--;
        WROTE(*link);
        WROTE(table->count);
    }
    DURABLE();
    DROPPED(heap, gone);
}

/* The keys 0 to `work`, each once, in an order that is another one for each factor. */
static uint64_t key_at(long at, long work, uint64_t factor) {
    return (uint64_t)at * factor % (uint64_t)work;
}

void run(nvl_heap_t *heap, int row, long work) {
    /* Primes above any amount of work. */
    const uint64_t factors[] = {1000003, 1000033, 1000037, 1000039};
    found = 0;
    for (long at = 0; at < work; ++at) {
        uint64_t key = key_at(at, work, factors[row]);
        if (row == 0)
            insert(heap, key);
        else if (row == 1)
            update(heap, key, key * 5 + (uint64_t)at);
        else if (row == 2)
            found = found * 3 + (*link_to(key))->value;
        else
            drop(heap, key);
    }
    /* Plain C frees each by itself. */
    if (row == 3)
        nvl_collect(heap);
}

double answer(int row) {
    uint64_t sum = row == 2 ? found : 0;
    for (uint64_t at = 0; row != 2 && at < bucket_count; ++at)
        for (nvl const struct entry *entry = table->buckets[at]; entry; entry = entry->next)
            sum += entry->key * 31 + entry->value;
    return (double)sum + (double)table->count;
}
