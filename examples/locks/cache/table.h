/* Items by their keys: a hash table that grows a few buckets at a time. Callers hold the cache's
 * lock. */
#pragma once
#include "item.h"

bool table_start(void);
void table_stop(void);

uint32_t table_hash(const char *key, size_t size);

struct item *table_find(const char *key, size_t size, uint32_t hash);

/* No item with the same key may be in the table. */
void table_add(struct item *item);
void table_remove(struct item *item);

size_t table_buckets(void);
