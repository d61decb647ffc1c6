/* Values by keys, for one thread: a hash table that grows a bucket at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_SIZE_MAX = 64, VALUE_SIZE_MAX = 256 };

struct entry {
    struct entry *next; /* of the bucket */
    uint32_t hash, key_size, value_size;
    char bytes[]; /* the key, and the value */
};

struct table {
    struct entry **buckets;
    size_t bucket_count;
};

/* Zeros are an empty store. */
struct store {
    struct table table, larger; /* while it grows, buckets of `table` before `moved` are empty */
    size_t count, moved;
};

struct bytes {
    const char *start; /* NULL: there are none */
    size_t size;
};

/* False: there is no memory, or it is too large; all is as before. */
bool store_put(struct store *store, struct bytes key, struct bytes value);

/* Until the next call that changes the store. */
struct bytes store_get(const struct store *store, struct bytes key);

/* False: the key is not there. */
bool store_delete(struct store *store, struct bytes key);

/* Removes all. */
void store_end(struct store *store);
