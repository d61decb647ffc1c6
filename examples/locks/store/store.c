#include "store.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS_FIRST = 16 };

static uint32_t hash_of(struct bytes key) {
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = 0; i < key.size; i++)
        hash = (hash ^ (unsigned char)key.start[i]) * 0x100000001b3;
    return (uint32_t)(hash ^ hash >> 32);
}

static struct entry **bucket(const struct store *store, uint32_t hash) {
    size_t number = hash & (store->table.bucket_count - 1);
    if (store->larger.buckets && number < store->moved)
        return &store->larger.buckets[hash & (store->larger.bucket_count - 1)];
    return &store->table.buckets[number];
}

/* The pointer that leads to the key's entry, or is NULL where a new one is added. */
static struct entry **place_of(const struct store *store, struct bytes key, uint32_t hash) {
    struct entry **place = bucket(store, hash);
    for (; *place; place = &(*place)->next)
        if ((*place)->hash == hash && (*place)->key_size == key.size &&
            memcmp((*place)->bytes, key.start, key.size) == 0)
            break;
    return place;
}

static bool make_table(struct table *table, size_t bucket_count) {
    table->buckets = calloc(bucket_count, sizeof *table->buckets);
    table->bucket_count = bucket_count;
    return table->buckets != NULL;
}

static void move_bucket(struct store *store) {
    struct entry *entry = store->table.buckets[store->moved];
    store->table.buckets[store->moved++] = NULL;
    while (entry) {
        struct entry *next = entry->next;
        struct entry **place =
            &store->larger.buckets[entry->hash & (store->larger.bucket_count - 1)];
        entry->next = *place;
        *place = entry;
        entry = next;
    }
    if (store->moved == store->table.bucket_count) {
        free(store->table.buckets);
        store->table = store->larger;
        store->larger = (struct table){0};
        store->moved = 0;
    }
}

/* False: there is no table, and no memory for one. */
static bool grow(struct store *store) {
    if (!store->table.buckets)
        return make_table(&store->table, BUCKETS_FIRST);
    /* Without memory, chains get longer. */
    if (!store->larger.buckets && store->count >= store->table.bucket_count)
        make_table(&store->larger, 2 * store->table.bucket_count);
    if (store->larger.buckets)
        move_bucket(store);
    return true;
}

static struct entry *new_entry(struct bytes key, struct bytes value, uint32_t hash) {
    struct entry *entry = malloc(sizeof *entry + key.size + value.size);
    if (!entry)
        return NULL;
    entry->hash = hash;
    entry->key_size = (uint32_t)key.size;
    entry->value_size = (uint32_t)value.size;
    memcpy(entry->bytes, key.start, key.size);
    memcpy(entry->bytes + key.size, value.start, value.size);
    return entry;
}

static bool put(struct store *store, struct bytes key, struct bytes value) {
    if (!grow(store))
        return false;
    uint32_t hash = hash_of(key);
    struct entry **place = place_of(store, key, hash), *old = *place;
    if (old && old->value_size == value.size) {
        memcpy(old->bytes + key.size, value.start, value.size);
        return true;
    }
    struct entry *entry = new_entry(key, value, hash);
    if (!entry)
        return false;
    entry->next = old ? old->next : NULL;
    *place = entry;
    if (old)
        free(old);
    else
        store->count++;
    return true;
}

bool store_put(struct store *store, struct bytes key, struct bytes value) {
    if (key.size > KEY_SIZE_MAX || value.size > VALUE_SIZE_MAX)
        return false;
    return put(store, key, value);
}

struct bytes store_get(const struct store *store, struct bytes key) {
    const struct entry *entry = store->table.buckets ? *place_of(store, key, hash_of(key)) : NULL;
    return entry ? (struct bytes){entry->bytes + entry->key_size, entry->value_size}
                 : (struct bytes){0};
}

static bool remove_key(struct store *store, struct bytes key) {
    if (!store->table.buckets || key.size > KEY_SIZE_MAX)
        return false;
    struct entry **place = place_of(store, key, hash_of(key)), *entry = *place;
    if (!entry)
        return false;
    *place = entry->next;
    free(entry);
    store->count--;
    return true;
}

bool store_delete(struct store *store, struct bytes key) {
    return remove_key(store, key);
}

static void end_table(struct table *table) {
    for (size_t i = 0; i < table->bucket_count && table->buckets; i++)
        for (struct entry *entry = table->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            free(entry);
        }
    free(table->buckets);
}

void store_end(struct store *store) {
    end_table(&store->table);
    end_table(&store->larger);
    *store = (struct store){0};
}
