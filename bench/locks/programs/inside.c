/* inside OPERATIONS SETS [HEAP]: the cache's functions, called in this process: nanoseconds of one
 * operation, and, for a durable one, fences of a set and of a get. */
#include "values.h"

#include "cache.h"

#ifdef DURABLE
#include <durum.h>
#include <nv.h>

static uint64_t fences(void) {
    durum_stats stats;
    durum_thread_stats(&stats);
    return stats.fences;
}

static void open_heap(const char *path) {
    if (nv_open(path) != 0)
        fail(nv_error());
}
#else
static uint64_t fences(void) {
    return 0;
}

static void open_heap(const char *path) {
    (void)path;
}
#endif

static void set(uint64_t key) {
    char text[KEY_SIZE + 1], value[VALUE_SIZE + 1];
    struct item *item;
    versions[key]++;
    write_key(key, text);
    write_value(key, value);
    if (cache_allocate((struct key){text, KEY_SIZE}, 0, 0, VALUE_SIZE, &item) != ALLOCATED)
        fail("there is no memory");
    memcpy(item_value(item), value, VALUE_SIZE);
    if (cache_store(item, STORING_SET, 0) != STORED)
        fail("it is not stored");
    cache_release(item);
}

static void get(uint64_t key) {
    char text[KEY_SIZE + 1], value[VALUE_SIZE + 1];
    uint64_t cas;
    write_key(key, text);
    write_value(key, value);
    struct item *item = cache_find((struct key){text, KEY_SIZE}, &cas);
    if (!item || memcmp(item_value(item), value, VALUE_SIZE) != 0)
        fail("another value");
    cache_release(item);
}

static double fences_of(void (*operation)(uint64_t)) {
    uint64_t before = fences();
    for (uint64_t key = 0; key < KEYS; key++)
        operation(key);
    return (double)(fences() - before) / KEYS;
}

int main(int count, char **arguments) {
    if (count < 3)
        return 2;
    open_heap(count > 3 ? arguments[3] : NULL);
    if (!cache_start(64 << 20))
        fail("there is no memory");
    for (uint64_t key = 0; key < KEYS; key++)
        set(key);
    double of_set = fences_of(set), of_get = fences_of(get);
    printf("%.1f %.2f %.2f\n", run(atol(arguments[1]), (unsigned)atoi(arguments[2]), set, get),
           of_set, of_get);
    return 0;
}
