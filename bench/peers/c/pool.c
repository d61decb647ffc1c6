#include "pool.h"

#include <unistd.h>

const char *peer_version(void) {
    static char text[32];
    snprintf(text, sizeof(text), "libpmemobj, interface %d.%d", PMEMOBJ_MAJOR_VERSION,
             PMEMOBJ_MINOR_VERSION);
    return text;
}

const char *peer_error(void) {
    return pmemobj_errormsg();
}

int pool_create(struct pool *pool, const char *path, size_t size) {
    unlink(path);
    pool->pop = NULL;
    pool->path = strdup(path);
    if (pool->path == NULL)
        return -1;
    // As the other sides: pages are there before the first operation.
    int prefault = 1;
    if (pmemobj_ctl_set(NULL, "prefault.at_create", &prefault) == 0)
        pool->pop = pmemobj_create(path, POBJ_LAYOUT_NAME(durum_bench), size, 0600);
    if (pool->pop == NULL) {
        free(pool->path);
        return -1;
    }
    return 0;
}

void pool_remove(struct pool *pool) {
    if (pool->pop != NULL)
        pmemobj_close(pool->pop);
    if (pool->path != NULL)
        unlink(pool->path);
    free(pool->path);
}
