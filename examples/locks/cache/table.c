#include "table.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS_FIRST = 1 << 10,
    BUCKETS_MAX = 1 << 30,
    MOVED_PER_ADD = 4, /* so the smaller table is empty long before the larger one is full */
};

/* While the table grows, buckets of `previous` from `moved` on still have their items. */
static struct item **buckets, **previous;
static size_t count, bucket_count, previous_count, moved;

bool table_start(void) {
    bucket_count = BUCKETS_FIRST;
    buckets = calloc(bucket_count, sizeof *buckets);
    return buckets != NULL;
}

void table_stop(void) {
    free(previous);
    free(buckets);
    previous = buckets = NULL;
}

uint32_t table_hash(const char *key, size_t size) {
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3;
    return (uint32_t)(hash ^ hash >> 32);
}

static struct item **bucket(uint32_t hash) {
    if (previous && (hash & (previous_count - 1)) >= moved)
        return &previous[hash & (previous_count - 1)];
    return &buckets[hash & (bucket_count - 1)];
}

struct item *table_find(const char *key, size_t size, uint32_t hash) {
    for (struct item *item = *bucket(hash); item; item = item->chain)
        if (item->hash == hash && item->key_size == size && memcmp(item->bytes, key, size) == 0)
            return item;
    return NULL;
}

static void grow(void) {
    struct item **larger = calloc(2 * bucket_count, sizeof *larger);
    if (!larger)
        return; /* the chains get longer, and nothing is lost */
    previous = buckets;
    previous_count = bucket_count;
    moved = 0;
    buckets = larger;
    bucket_count *= 2;
}

static void move_bucket(void) {
    struct item *item = previous[moved];
    previous[moved] = NULL;
    while (item) {
        struct item *next = item->chain;
        struct item **place = &buckets[item->hash & (bucket_count - 1)];
        item->chain = *place;
        *place = item;
        item = next;
    }
    if (++moved == previous_count) {
        free(previous);
        previous = NULL;
    }
}

void table_add(struct item *item) {
    if (!previous && count >= bucket_count + bucket_count / 2 && bucket_count < BUCKETS_MAX)
        grow();
    for (int i = 0; i < MOVED_PER_ADD && previous; i++)
        move_bucket();
    struct item **place = bucket(item->hash);
    item->chain = *place;
    *place = item;
    count++;
}

void table_remove(struct item *item) {
    struct item **place = bucket(item->hash);
    while (*place != item)
        place = &(*place)->chain;
    *place = item->chain;
    count--;
}

size_t table_buckets(void) {
    return bucket_count;
}
