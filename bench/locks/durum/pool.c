#include "../kernel.h"

struct durum_pool *pool;

void memory_open(const char *path) {
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.engine = ENGINE;
    options.root_puddle_size = (uint64_t)4 << 20;
    struct durum_store *store = durum_store_create(path, NULL);
    if (store)
        pool = durum_pool_create(store, "kernel", &options);
    if (!pool)
        done(durum_errorcode());
}

void *memory_root(size_t size) {
    void *root = durum_malloc_zeroed(pool, NULL, size);
    if (!root)
        done(durum_errorcode());
    return root;
}

void memory_counts(struct counts *counts) {
    durum_stats stats;
    /* What is in flight is waited for. */
    done(durum_pool_sync(pool));
    done(durum_thread_stats(&stats));
    *counts = (struct counts){stats.fences, stats.write_backs + stats.streamed_lines,
                              stats.bytes_written};
}

void memory_delay(unsigned long fence_ns) {
    durum_emulate_delays(0, fence_ns, 0);
}
