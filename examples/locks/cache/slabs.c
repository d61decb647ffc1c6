#include "slabs.h"

#include <stdalign.h>
#include <stdlib.h>

#include "item.h"

enum { CHUNK_ALIGN = 8, CHUNK_SIZE_MIN = sizeof(struct item) + 24 };

struct page {
    struct page *next;
    alignas(16) char bytes[SLAB_PAGE_SIZE];
};

struct free_chunk {
    struct free_chunk *next;
};

struct class {
    size_t chunk_size;
    struct free_chunk *free;
    char *unused; /* chunks of the newest page that nobody has had: so a new page costs no walk over
                     it */
    size_t unused_count;
    size_t pages, used, freed;
};

static struct class classes[SLAB_CLASSES_MAX];
static unsigned class_count;
static struct page *pages;
static size_t page_count, page_count_max;

void slabs_start(size_t bytes_max, double growth) {
    page_count_max = bytes_max / SLAB_PAGE_SIZE;
    double size = CHUNK_SIZE_MIN;
    while (class_count < SLAB_CLASSES_MAX - 1 && size * growth <= SLAB_PAGE_SIZE) {
        size_t chunk_size = ((size_t)size + CHUNK_ALIGN - 1) / CHUNK_ALIGN * CHUNK_ALIGN;
        classes[class_count++].chunk_size = chunk_size;
        size = (double)chunk_size * growth;
    }
    classes[class_count++].chunk_size = SLAB_PAGE_SIZE;
}

void slabs_stop(void) {
    while (pages) {
        struct page *page = pages;
        pages = page->next;
        free(page);
    }
}

unsigned slabs_class(size_t size) {
    for (unsigned class = 0; class < class_count; class ++)
        if (size <= classes[class].chunk_size)
            return class;
    return SLAB_NO_CLASS;
}

static bool add_page(struct class *class) {
    if (page_count >= page_count_max && class->pages > 0)
        return false;
    struct page *page = malloc(sizeof *page);
    if (!page)
        return false;
    page->next = pages;
    pages = page;
    page_count++;
    class->pages++;
    class->unused = page->bytes;
    class->unused_count = SLAB_PAGE_SIZE / class->chunk_size;
    return true;
}

void *slabs_take(unsigned number) {
    struct class *class = &classes[number];
    void *chunk = class->free;
    if (chunk) {
        class->free = class->free->next;
        class->freed--;
    } else {
        if (class->unused_count == 0 && !add_page(class))
            return NULL;
        chunk = class->unused;
        class->unused += class->chunk_size;
        class->unused_count--;
    }
    class->used++;
    return chunk;
}

void slabs_give(unsigned number, void *chunk) {
    struct class *class = &classes[number];
    struct free_chunk *free = chunk;
    free->next = class->free;
    class->free = free;
    class->freed++;
    class->used--;
}

unsigned slabs_classes(void) {
    return class_count;
}

struct slab_usage slabs_usage(unsigned number) {
    const struct class *class = &classes[number];
    return (struct slab_usage){
        .chunk_size = class->chunk_size,
        .pages = class->pages,
        .chunks_used = class->used,
        .chunks_free = class->freed + class->unused_count,
    };
}
