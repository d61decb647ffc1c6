/* What the server has done, under a lock of its own. Callers may hold the cache's lock. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The names are those that clients of memcached look for. */
#define STATS_COUNTERS(COUNTER)                                                                    \
    COUNTER(curr_connections)                                                                      \
    COUNTER(total_connections)                                                                     \
    COUNTER(cmd_get)                                                                               \
    COUNTER(cmd_set)                                                                               \
    COUNTER(cmd_flush)                                                                             \
    COUNTER(cmd_touch)                                                                             \
    COUNTER(get_hits)                                                                              \
    COUNTER(get_misses)                                                                            \
    COUNTER(delete_hits)                                                                           \
    COUNTER(delete_misses)                                                                         \
    COUNTER(incr_hits)                                                                             \
    COUNTER(incr_misses)                                                                           \
    COUNTER(decr_hits)                                                                             \
    COUNTER(decr_misses)                                                                           \
    COUNTER(cas_hits)                                                                              \
    COUNTER(cas_badval)                                                                            \
    COUNTER(cas_misses)                                                                            \
    COUNTER(touch_hits)                                                                            \
    COUNTER(touch_misses)                                                                          \
    COUNTER(bytes_read)                                                                            \
    COUNTER(bytes_written)                                                                         \
    COUNTER(bytes)                                                                                 \
    COUNTER(curr_items)                                                                            \
    COUNTER(total_items)                                                                           \
    COUNTER(evictions)                                                                             \
    COUNTER(reclaimed)

enum counter {
#define STATS_ENUM(name) STATS_##name,
    STATS_COUNTERS(STATS_ENUM)
#undef STATS_ENUM
        STATS_COUNT
};

extern const char *const stats_names[STATS_COUNT];

void stats_add(enum counter counter, uint64_t by);
void stats_subtract(enum counter counter, uint64_t by);
void stats_linked(size_t item_size);
void stats_unlinked(size_t item_size);

/* Sets to 0 what counts events, not what tells how things are now. */
void stats_reset(void);

void stats_read(uint64_t values[STATS_COUNT]);
