/* The cache: items by keys, in memory of a fixed size. Any thread may call any function but start
 * and stop. */
#pragma once
#include "item.h"

enum {
    VALUE_SIZE_MAX = 1 << 20
}; /* that of a chunk; what fits is less by the item's key and head */

struct key {
    const char *text;
    size_t size;
};

/* False: there is not enough memory. */
bool cache_start(size_t bytes_max);

/* No reference may be left. */
void cache_stop(void);

enum allocation { ALLOCATED, ALLOCATION_TOO_LARGE, ALLOCATION_NO_MEMORY };

/* An item whose value the caller fills, stores and releases, or only releases. `seconds` until it
 * expires: from now on, or, if they are more than 30 days, since 1970; less than 0 is at once, and
 * 0 never. */
enum allocation cache_allocate(struct key key, uint32_t flags, int64_t seconds, size_t value_size,
                               struct item **item);

enum storing {
    STORING_SET,
    STORING_ADD,
    STORING_REPLACE,
    STORING_APPEND,
    STORING_PREPEND,
    STORING_CAS
};
enum stored { STORED, NOT_STORED, STORED_EXISTS, STORED_NOT_FOUND, STORED_NO_MEMORY };

/* Makes the item visible. Whatever comes of it, the caller still has its reference. */
enum stored cache_store(struct item *item, enum storing how, uint64_t cas);

/* A reference, or NULL. `cas` is what the item's number is now. */
struct item *cache_find(struct key key, uint64_t *cas);
void cache_release(struct item *item);

bool cache_delete(struct key key);
bool cache_touch(struct key key, int64_t seconds);

enum counting { COUNTED, COUNTING_NOT_FOUND, COUNTING_NO_NUMBER, COUNTING_NO_MEMORY };

/* Adds to a number, modulo 2^64, or subtracts from it, down to 0. */
enum counting cache_count(struct key key, bool is_up, uint64_t by, uint64_t *result);

/* What is in the cache then is gone `seconds` from now on (0: now), or since 1970, as above. */
void cache_flush(int64_t seconds);

/* Lines for the commands `stats items` and `stats slabs`, to be freed; NULL: no memory. */
char *cache_describe_items(void);
char *cache_describe_slabs(void);
