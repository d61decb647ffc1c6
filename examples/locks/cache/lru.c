#include "lru.h"

#include "slabs.h"

static struct item *newest[SLAB_CLASSES_MAX];
static struct item *oldest[SLAB_CLASSES_MAX];
static size_t counts[SLAB_CLASSES_MAX];

void lru_add(struct item *item) {
    unsigned class = item->class;
    item->newer = NULL;
    item->older = newest[class];
    if (item->older)
        item->older->newer = item;
    else
        oldest[class] = item;
    newest[class] = item;
    counts[class]++;
}

void lru_remove(struct item *item) {
    unsigned class = item->class;
    if (item->newer)
        item->newer->older = item->older;
    else
        newest[class] = item->older;
    if (item->older)
        item->older->newer = item->newer;
    else
        oldest[class] = item->newer;
    counts[class]--;
}

struct item *lru_oldest(unsigned class) {
    return oldest[class];
}

size_t lru_count(unsigned class) {
    return counts[class];
}
