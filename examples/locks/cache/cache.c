#include "cache.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lru.h"
#include "slabs.h"
#include "stats.h"
#include "table.h"
#include "text.h"

enum {
    SECONDS_FROM_NOW_MAX = 60 * 60 * 24 * 30,
    /* An item that is read all the time is moved in its list once a minute: a read is a read then.
     */
    SECONDS_BETWEEN_MOVES = 60,
    /* How many items that somebody refers to are passed over when room is needed. */
    EVICTION_TRIES = 50,
    NUMBER_DIGITS_MAX = 20,
    DESCRIPTION_SIZE_PER_CLASS = 256,
};
static const double CHUNK_GROWTH = 1.25;

/* Guards the table, the lists, the slabs, and what follows. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_cas;
static uint64_t flushed_cas; /* items with this number, and those before, are gone */
static time_t flush_time;    /* when a flush is due; 0: none is */

bool cache_start(size_t bytes_max) {
    slabs_start(bytes_max, CHUNK_GROWTH);
    return table_start();
}

void cache_stop(void) {
    table_stop();
    slabs_stop();
}

static time_t expiry(int64_t seconds, time_t now) {
    if (seconds == 0)
        return 0;
    if (seconds < 0)
        return 1;
    return seconds <= SECONDS_FROM_NOW_MAX ? now + seconds : (time_t)seconds;
}

static bool is_dead(const struct item *item, time_t now) {
    return (item->expires != 0 && item->expires <= now) || item->cas <= flushed_cas;
}

/* Each operation asks for the time first, so a flush that is due comes before it. */
static time_t current_time(void) {
    time_t now = time(NULL);
    if (flush_time != 0 && flush_time <= now) {
        flushed_cas = last_cas;
        flush_time = 0;
    }
    return now;
}

static void link_item(struct item *item, time_t now) {
    item->cas = ++last_cas;
    item->used = now;
    item->is_linked = true;
    table_add(item);
    lru_add(item);
    stats_linked(item_size(item));
}

static void unlink_item(struct item *item) {
    item->is_linked = false;
    table_remove(item);
    lru_remove(item);
    stats_unlinked(item_size(item));
    if (item->references == 0)
        slabs_give(item->class, item);
}

static void release(struct item *item) {
    if (--item->references == 0 && !item->is_linked)
        slabs_give(item->class, item);
}

/* Without a reference: it is good until the lock is let go. */
static struct item *find(struct key key, time_t now) {
    struct item *item = table_find(key.text, key.size, table_hash(key.text, key.size));
    if (item && is_dead(item, now)) {
        unlink_item(item);
        stats_add(STATS_reclaimed, 1);
        return NULL;
    }
    return item;
}

/* Of the oldest items one that is dead goes; if there is none, the oldest one that nobody refers
 * to. */
static bool evict(unsigned class, time_t now) {
    struct item *victim = NULL;
    struct item *item = lru_oldest(class);
    for (int tries = EVICTION_TRIES; item && tries > 0; item = item->newer, tries--) {
        if (item->references > 0)
            continue;
        if (is_dead(item, now)) {
            unlink_item(item);
            stats_add(STATS_reclaimed, 1);
            return true;
        }
        if (!victim)
            victim = item;
    }
    if (!victim)
        return false;
    unlink_item(victim);
    stats_add(STATS_evictions, 1);
    return true;
}

static enum allocation allocate(struct key key, uint32_t flags, time_t expires, size_t value_size,
                                time_t now, struct item **result) {
    char head[HEAD_SIZE_MAX];
    size_t head_size = (size_t)snprintf(head, sizeof head, " %" PRIu32 " %zu", flags, value_size);
    unsigned class =
        slabs_class(sizeof(struct item) + key.size + head_size + value_size + LINE_END_SIZE);
    if (class == SLAB_NO_CLASS)
        return ALLOCATION_TOO_LARGE;
    struct item *item = slabs_take(class);
    if (!item && evict(class, now))
        item = slabs_take(class);
    if (!item)
        return ALLOCATION_NO_MEMORY;
    *item = (struct item){
        .expires = expires,
        .hash = table_hash(key.text, key.size),
        .flags = flags,
        .value_size = (uint32_t)value_size,
        .references = 1,
        .class = (uint8_t) class,
        .key_size = (uint8_t)key.size,
        .head_size = (uint8_t)head_size,
    };
    memcpy(item->bytes, key.text, key.size);
    memcpy(item_head(item), head, head_size);
    memcpy(item_value(item) + value_size, "\r\n", LINE_END_SIZE);
    *result = item;
    return ALLOCATED;
}

enum allocation cache_allocate(struct key key, uint32_t flags, int64_t seconds, size_t value_size,
                               struct item **item) {
    pthread_mutex_lock(&lock);
    time_t now = current_time();
    enum allocation allocation = allocate(key, flags, expiry(seconds, now), value_size, now, item);
    pthread_mutex_unlock(&lock);
    return allocation;
}

static void replace_item(struct item *old, struct item *fresh, time_t now) {
    if (old)
        unlink_item(old);
    link_item(fresh, now);
}

/* A new item with both values, as the old one may be on its way to somebody. */
static enum stored join(struct item *old, struct item *item, enum storing how, time_t now) {
    struct key key = {item->bytes, item->key_size};
    struct item *both;
    old->references++; /* it must not be the one that makes room */
    enum allocation allocation = allocate(key, old->flags, old->expires,
                                          (size_t)old->value_size + item->value_size, now, &both);
    if (allocation == ALLOCATED) {
        struct item *first = how == STORING_APPEND ? old : item;
        struct item *second = how == STORING_APPEND ? item : old;
        memcpy(item_value(both), item_value(first), first->value_size);
        memcpy(item_value(both) + first->value_size, item_value(second), second->value_size);
        replace_item(old, both, now);
        release(both);
    }
    release(old);
    return allocation == ALLOCATED ? STORED : STORED_NO_MEMORY;
}

static enum stored store(struct item *item, enum storing how, uint64_t cas, time_t now) {
    struct item *old = find((struct key){item->bytes, item->key_size}, now);
    switch (how) {
    case STORING_SET:
        break;
    case STORING_ADD:
        if (old)
            return NOT_STORED;
        break;
    case STORING_REPLACE:
        if (!old)
            return NOT_STORED;
        break;
    case STORING_APPEND:
    case STORING_PREPEND:
        return old ? join(old, item, how, now) : NOT_STORED;
    case STORING_CAS:
        if (!old) {
            stats_add(STATS_cas_misses, 1);
            return STORED_NOT_FOUND;
        }
        if (old->cas != cas) {
            stats_add(STATS_cas_badval, 1);
            return STORED_EXISTS;
        }
        stats_add(STATS_cas_hits, 1);
        break;
    }
    replace_item(old, item, now);
    return STORED;
}

enum stored cache_store(struct item *item, enum storing how, uint64_t cas) {
    pthread_mutex_lock(&lock);
    stats_add(STATS_cmd_set, 1);
    enum stored stored = store(item, how, cas, current_time());
    pthread_mutex_unlock(&lock);
    return stored;
}

struct item *cache_find(struct key key, uint64_t *cas) {
    pthread_mutex_lock(&lock);
    time_t now = current_time();
    struct item *item = find(key, now);
    if (item) {
        item->references++;
        *cas = item->cas;
        if (now - item->used >= SECONDS_BETWEEN_MOVES) {
            lru_remove(item);
            lru_add(item);
            item->used = now;
        }
    }
    pthread_mutex_unlock(&lock);
    return item;
}

void cache_release(struct item *item) {
    pthread_mutex_lock(&lock);
    release(item);
    pthread_mutex_unlock(&lock);
}

bool cache_delete(struct key key) {
    pthread_mutex_lock(&lock);
    struct item *item = find(key, current_time());
    if (item)
        unlink_item(item);
    stats_add(item ? STATS_delete_hits : STATS_delete_misses, 1);
    pthread_mutex_unlock(&lock);
    return item != NULL;
}

bool cache_touch(struct key key, int64_t seconds) {
    pthread_mutex_lock(&lock);
    time_t now = current_time();
    struct item *item = find(key, now);
    if (item)
        item->expires = expiry(seconds, now);
    stats_add(STATS_cmd_touch, 1);
    stats_add(item ? STATS_touch_hits : STATS_touch_misses, 1);
    pthread_mutex_unlock(&lock);
    return item != NULL;
}

/* Gives an item another value: in place if nobody else can see it change. */
static enum counting rewrite(struct item *item, const char *value, size_t size, time_t now) {
    if (item->references == 0 && item->value_size == size) {
        memcpy(item_value(item), value, size);
        item->cas = ++last_cas;
        return COUNTED;
    }
    struct item *fresh;
    item->references++;
    enum allocation allocation = allocate((struct key){item->bytes, item->key_size}, item->flags,
                                          item->expires, size, now, &fresh);
    if (allocation == ALLOCATED) {
        memcpy(item_value(fresh), value, size);
        replace_item(item, fresh, now);
        release(fresh);
    }
    release(item);
    return allocation == ALLOCATED ? COUNTED : COUNTING_NO_MEMORY;
}

static enum counting count(struct key key, bool is_up, uint64_t by, uint64_t *result) {
    time_t now = current_time();
    struct item *item = find(key, now);
    if (!item) {
        stats_add(is_up ? STATS_incr_misses : STATS_decr_misses, 1);
        return COUNTING_NOT_FOUND;
    }
    uint64_t number;
    if (!text_unsigned((struct word){item_value(item), item->value_size}, UINT64_MAX, &number))
        return COUNTING_NO_NUMBER;
    if (is_up)
        number += by;
    else
        number = number > by ? number - by : 0;
    char digits[NUMBER_DIGITS_MAX + 1];
    int size = snprintf(digits, sizeof digits, "%" PRIu64, number);
    stats_add(is_up ? STATS_incr_hits : STATS_decr_hits, 1);
    *result = number;
    return rewrite(item, digits, (size_t)size, now);
}

enum counting cache_count(struct key key, bool is_up, uint64_t by, uint64_t *result) {
    pthread_mutex_lock(&lock);
    enum counting counting = count(key, is_up, by, result);
    pthread_mutex_unlock(&lock);
    return counting;
}

void cache_flush(int64_t seconds) {
    pthread_mutex_lock(&lock);
    time_t now = current_time();
    flush_time = seconds == 0 ? now : expiry(seconds, now);
    current_time();
    stats_add(STATS_cmd_flush, 1);
    pthread_mutex_unlock(&lock);
}

char *cache_describe_items(void) {
    pthread_mutex_lock(&lock);
    size_t room = (size_t)slabs_classes() * DESCRIPTION_SIZE_PER_CLASS + 1, size = 0;
    char *text = calloc(room, 1);
    time_t now = current_time();
    for (unsigned class = 0; text && class < slabs_classes(); class ++) {
        const struct item *item = lru_oldest(class);
        if (!item)
            continue;
        size += (size_t)snprintf(
            text + size, room - size, "STAT items:%u:number %zu\r\nSTAT items:%u:age %lld\r\n",
            class + 1, lru_count(class), class + 1, (long long)(now - item->used));
    }
    pthread_mutex_unlock(&lock);
    return text;
}

char *cache_describe_slabs(void) {
    pthread_mutex_lock(&lock);
    size_t room = (size_t)(slabs_classes() + 1) * DESCRIPTION_SIZE_PER_CLASS, size = 0;
    char *text = calloc(room, 1);
    unsigned active = 0;
    size_t pages = 0;
    for (unsigned class = 0; text && class < slabs_classes(); class ++) {
        struct slab_usage usage = slabs_usage(class);
        if (usage.pages == 0)
            continue;
        active++;
        pages += usage.pages;
        size += (size_t)snprintf(text + size, room - size,
                                 "STAT %u:chunk_size %zu\r\nSTAT %u:total_pages %zu\r\n"
                                 "STAT %u:used_chunks %zu\r\nSTAT %u:free_chunks %zu\r\n",
                                 class + 1, usage.chunk_size, class + 1, usage.pages, class + 1,
                                 usage.chunks_used, class + 1, usage.chunks_free);
    }
    if (text)
        snprintf(text + size, room - size,
                 "STAT active_slabs %u\r\nSTAT total_malloced %zu\r\nSTAT hash_buckets %zu\r\n",
                 active, pages * SLAB_PAGE_SIZE, table_buckets());
    pthread_mutex_unlock(&lock);
    return text;
}
