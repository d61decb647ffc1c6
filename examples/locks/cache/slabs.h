/* Memory for items: chunks of some sizes, cut from pages that are never given back. Callers hold
 * the cache's lock. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum {
    SLAB_PAGE_SIZE = 1 << 20, /* and the size of the largest chunk */
    SLAB_CLASSES_MAX = 64,
    SLAB_NO_CLASS = SLAB_CLASSES_MAX,
};

struct slab_usage {
    size_t chunk_size, pages, chunks_used, chunks_free;
};

/* Each class may have a page, however little bytes_max is: else no item of its size could ever be
 * stored. */
void slabs_start(size_t bytes_max, double growth);
void slabs_stop(void);

/* The class of the smallest chunks that have this size; SLAB_NO_CLASS if there are none. */
unsigned slabs_class(size_t size);

/* NULL: there is no chunk left, and no memory for a page of them. */
void *slabs_take(unsigned class);
void slabs_give(unsigned class, void *chunk);

unsigned slabs_classes(void);
struct slab_usage slabs_usage(unsigned class);
