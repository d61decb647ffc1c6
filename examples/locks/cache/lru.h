/* Which item of a class was used last, and which one longest ago. Callers hold the cache's lock. */
#pragma once
#include "item.h"

void lru_add(struct item *item);
void lru_remove(struct item *item);

/* The item to look at first if room is needed; the next ones are its `newer`. */
struct item *lru_oldest(unsigned class);

size_t lru_count(unsigned class);
