/* A hash table with chains: a sequence of insertions, changes and deletions, each a transaction
 * together with the number of those that are done. `hash HEAP [OPERATIONS]` */
#include "heap.h"
#include "run.h"
#include <nvl.h>

#define BUCKETS 1024
#define KEYS 4096

struct entry {
    uint64_t key;
    uint64_t value;
    nvl struct entry *next;
};

struct table {
    long operations;
    long done;
    nvl struct entry *buckets[BUCKETS];
};

static void operation(nvl_heap_t *heap, nvl struct table *table, uint64_t number) {
    uint64_t key = random_at(number) % KEYS;
    nvl struct entry *nvl *link = &table->buckets[random_at(key) % BUCKETS];
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    nvl struct entry *found = *link;
#pragma nvl atomic heap(heap)
    {
        if (!found) {
            nvl struct entry *made = nvl_alloc_nv(heap, 1, struct entry);
            made->key = key;
            made->value = number;
            *link = made;
        } else if (number % 3 == 0) {
            *link = found->next;
        } else {
            found->value += number;
        }
        table->done++;
    }
}

int main(int argc, char **argv) {
    nvl_heap_t *heap = heap_of(argc, argv);
    nvl struct table *table = nvl_get_root(heap, struct table);
    if (!table) {
        table = nvl_alloc_nv(heap, 1, struct table);
        table->operations = argument(argc, argv, 2, 20000);
        nvl_set_root(heap, table);
    }
    while (table->done < table->operations)
        operation(heap, table, (uint64_t)table->done);
    uint64_t sum = 0;
    for (long at = 0; at < BUCKETS; ++at)
        for (nvl struct entry *entry = table->buckets[at]; entry; entry = entry->next)
            sum += entry->key * 31 + entry->value;
    printf("hash %ld: %llu\n", table->operations, (unsigned long long)sum);
    nvl_close(heap);
    return 0;
}
