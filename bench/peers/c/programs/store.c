/*
 * The key-value store for text: examples/rust/src/bin/store_durum.rs.
 *
 * A pair is an object with its key in it, in a chain, and one for its value: two allocations, where
 * a text of its own for each key and a vector for each chain would take more.
 */
#include <stdbool.h>

#include "../pool.h"
#include "hashes.h"
#include "programs.h"

struct store_text {
    uint64_t length;
    uint64_t capacity;
    char bytes[];
};

typedef TOID(struct store_text) text_id;

struct store_pair {
    TOID(struct store_pair) next;
    text_id value;
    uint64_t hash;
    uint64_t key_len;
    char key[];
};

typedef TOID(struct store_pair) pair_id;

struct store_buckets {
    pair_id heads[1];
};

struct store_root {
    TOID(struct store_buckets) buckets;
    uint64_t bucket_count;
    uint64_t length;
};

struct peer_store {
    struct pool pool;
    struct store_root *root;
};

struct peer_store *peer_store_open(const char *path, size_t pool_size) {
    struct peer_store *store = calloc(1, sizeof(*store));
    if (store == NULL || pool_create(&store->pool, path, pool_size) != 0) {
        free(store);
        return NULL;
    }
    store->root = pmemobj_direct(pmemobj_root(store->pool.pop, sizeof(struct store_root)));
    if (store->root == NULL) {
        peer_store_close(store);
        return NULL;
    }
    return store;
}

void peer_store_close(struct peer_store *store) {
    if (store != NULL)
        pool_remove(&store->pool);
    free(store);
}

static bool has_key(const struct store_pair *pair, uint64_t hash, const char *key, size_t key_len) {
    return pair->hash == hash && pair->key_len == key_len && memcmp(pair->key, key, key_len) == 0;
}

static pair_id *head_of(struct store_root *root, uint64_t hash) {
    return &D_RW(root->buckets)->heads[hash % root->bucket_count];
}

/* The link that leads to the pair with a key, or the end of its chain; null without buckets. */
static pair_id *link_to(struct store_root *root, const char *key, size_t key_len) {
    if (root->bucket_count == 0)
        return NULL;
    uint64_t hash = hash_of(key, key_len);
    pair_id *link = head_of(root, hash);
    while (!TOID_IS_NULL(*link) && !has_key(D_RO(*link), hash, key, key_len))
        link = &D_RW(*link)->next;
    return link;
}

/* Makes twice as many buckets, and puts every pair into its new one. */
static void grow(struct store_root *root) {
    struct store_root old = *root;
    uint64_t bucket_count = old.bucket_count == 0 ? 4 : 2 * old.bucket_count;
    TX_ADD_DIRECT(root);
    root->bucket_count = bucket_count;
    root->buckets = TX_ZALLOC(struct store_buckets, bucket_count * sizeof(pair_id));
    for (uint64_t bucket = 0; bucket < old.bucket_count; bucket++) {
        pair_id pair = D_RO(old.buckets)->heads[bucket];
        while (!TOID_IS_NULL(pair)) {
            pair_id rest = D_RO(pair)->next;
            pair_id *head = head_of(root, D_RO(pair)->hash);
            TX_SET(pair, next, *head);
            *head = pair;
            pair = rest;
        }
    }
    if (!TOID_IS_NULL(old.buckets))
        TX_FREE(old.buckets);
}

static text_id new_text(uint64_t capacity) {
    text_id text = TX_ALLOC(struct store_text, sizeof(struct store_text) + capacity);
    D_RW(text)->capacity = capacity;
    D_RW(text)->length = 0;
    return text;
}

/* Adds bytes to a text that has room, and is new or whose length is snapshotted. */
static void add_bytes(struct store_text *text, const char *bytes, size_t len) {
    memcpy(&text->bytes[text->length], bytes, len);
    text->length += len;
}

/* Gives a pair that is there another value: in the old one's place, if that has room. */
static void replace(pair_id pair, const char *bytes, size_t len) {
    text_id old = D_RO(pair)->value;
    if (len <= D_RO(old)->capacity) {
        pmemobj_tx_add_range(old.oid, 0, sizeof(struct store_text) + len);
        D_RW(old)->length = 0;
        add_bytes(D_RW(old), bytes, len);
        return;
    }
    text_id value = new_text(len);
    add_bytes(D_RW(value), bytes, len);
    TX_SET(pair, value, value);
    TX_FREE(old);
}

static void put(struct store_root *root, const char *key, size_t key_len, const char *bytes,
                size_t len) {
    pair_id *link = link_to(root, key, key_len);
    if (link != NULL && !TOID_IS_NULL(*link)) {
        replace(*link, bytes, len);
        return;
    }
    if (root->length >= 2 * root->bucket_count)
        grow(root);
    uint64_t hash = hash_of(key, key_len);
    pair_id *head = head_of(root, hash);
    pair_id pair = TX_ALLOC(struct store_pair, sizeof(struct store_pair) + key_len);
    struct store_pair *fresh = D_RW(pair);
    fresh->next = *head;
    fresh->value = new_text(len);
    add_bytes(D_RW(fresh->value), bytes, len);
    fresh->hash = hash;
    fresh->key_len = key_len;
    memcpy(fresh->key, key, key_len);
    TX_ADD_DIRECT(head);
    *head = pair;
    TX_SET_DIRECT(root, length, root->length + 1);
}

static void append(struct store_root *root, const char *key, size_t key_len, const char *bytes,
                   size_t len) {
    pair_id *link = link_to(root, key, key_len);
    if (link == NULL || TOID_IS_NULL(*link)) {
        put(root, key, key_len, bytes, len);
        return;
    }
    text_id old = D_RO(*link)->value;
    struct store_text *text = D_RW(old);
    if (text->capacity - text->length >= len) {
        /* Nobody reads what is behind the length: it is to be durable, but needs no snapshot. */
        pmemobj_tx_xadd_range_direct(&text->bytes[text->length], len, POBJ_XADD_NO_SNAPSHOT);
        TX_ADD_FIELD(old, length);
        add_bytes(text, bytes, len);
        return;
    }
    text_id longer = new_text(2 * (text->length + len));
    add_bytes(D_RW(longer), text->bytes, text->length);
    add_bytes(D_RW(longer), bytes, len);
    TX_SET(*link, value, longer);
    TX_FREE(old);
}

static bool delete_key(struct store_root *root, const char *key, size_t key_len) {
    pair_id *link = link_to(root, key, key_len);
    if (link == NULL || TOID_IS_NULL(*link))
        return false;
    pair_id pair = *link;
    TX_ADD_DIRECT(link);
    *link = D_RO(pair)->next;
    TX_SET_DIRECT(root, length, root->length - 1);
    TX_FREE(D_RO(pair)->value);
    TX_FREE(pair);
    return true;
}

typedef void change(struct store_root *, const char *, size_t, const char *, size_t);

static const char *pair_at(const struct peer_texts *texts, size_t index) {
    return texts->text + index * (texts->key_len + texts->value_len);
}

static int tx_change(struct peer_store *store, change *change, const struct peer_texts *texts,
                     const char *key) {
    int result = 0;
    TX_BEGIN(store->pool.pop) {
        change(store->root, key, texts->key_len, key + texts->key_len, texts->value_len);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

static int tx_delete(struct peer_store *store, const char *key, size_t key_len, uint64_t *found) {
    int result = 0;
    TX_BEGIN(store->pool.pop) {
        *found += delete_key(store->root, key, key_len);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_store_put(struct peer_store *store, const struct peer_texts *texts) {
    for (size_t i = 0; i < texts->count; i++) {
        if (tx_change(store, put, texts, pair_at(texts, i)) != 0)
            return -1;
    }
    return 0;
}

int peer_store_append(struct peer_store *store, const struct peer_texts *texts) {
    for (size_t i = 0; i < texts->count; i++) {
        if (tx_change(store, append, texts, pair_at(texts, i)) != 0)
            return -1;
    }
    return 0;
}

int peer_store_delete(struct peer_store *store, const struct peer_texts *texts, uint64_t *found) {
    *found = 0;
    for (size_t i = 0; i < texts->count; i++) {
        if (tx_delete(store, pair_at(texts, i), texts->key_len, found) != 0)
            return -1;
    }
    return 0;
}

static uint64_t sum_of_words(const char *bytes, size_t len) {
    uint64_t sum = 0;
    for (size_t at = 0; at + sizeof(uint64_t) <= len; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof(word));
        sum += word;
    }
    return sum;
}

uint64_t peer_store_read(struct peer_store *store, const struct peer_texts *texts) {
    uint64_t sum = 0;
    for (size_t i = 0; i < texts->count; i++) {
        const pair_id *link = link_to(store->root, pair_at(texts, i), texts->key_len);
        if (link == NULL || TOID_IS_NULL(*link))
            continue; /* the sum will be wrong, and the harness says so */
        const struct store_text *value = D_RO(D_RO(*link)->value);
        sum += sum_of_words(value->bytes, value->length);
    }
    return sum;
}

struct peer_walk peer_store_walk(struct peer_store *store) {
    struct peer_walk walk = {0, 0, 1};
    const struct store_root *root = store->root;
    for (uint64_t bucket = 0; bucket < root->bucket_count; bucket++) {
        pair_id pair = D_RO(root->buckets)->heads[bucket];
        while (!TOID_IS_NULL(pair)) {
            const struct store_pair *seen = D_RO(pair);
            const struct store_text *value = D_RO(seen->value);
            walk.count++;
            walk.sum +=
                sum_of_words(seen->key, seen->key_len) ^ sum_of_words(value->bytes, value->length);
            pair = seen->next;
        }
    }
    return walk;
}
