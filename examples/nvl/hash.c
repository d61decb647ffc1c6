/* A hash table with chains: a sequence of insertions, changes and deletions. `hash [OPERATIONS]` */
#include "run.h"

#define BUCKETS 1024
#define KEYS 4096

struct entry {
    uint64_t key;
    uint64_t value;
    struct entry *next;
};

static struct entry *buckets[BUCKETS];

static void operation(uint64_t number) {
    uint64_t key = random_at(number) % KEYS;
    struct entry **link = &buckets[random_at(key) % BUCKETS];
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    struct entry *found = *link;
    if (!found) {
        struct entry *made = calloc(1, sizeof *made);
        if (!made)
            exit(1);
        made->key = key;
        made->value = number;
        *link = made;
    } else if (number % 3 == 0) {
        *link = found->next;
        free(found);
    } else {
        found->value += number;
    }
}

int main(int argc, char **argv) {
    long operations = argument(argc, argv, 1, 20000);
    for (long done = 0; done < operations; ++done)
        operation((uint64_t)done);
    uint64_t sum = 0;
    for (long at = 0; at < BUCKETS; ++at)
        for (struct entry *entry = buckets[at]; entry; entry = entry->next)
            sum += entry->key * 31 + entry->value;
    printf("hash %ld: %llu\n", operations, (unsigned long long)sum);
    return 0;
}
