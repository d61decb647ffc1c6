#include "kv.h"

#include <endian.h>
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store {
    leveldb_t *db;
    leveldb_options_t *options;
    leveldb_writeoptions_t *synced;
    leveldb_readoptions_t *read;
};

static const char *version(void) {
    static char text[32];
    snprintf(text, sizeof(text), "LevelDB %d.%d", leveldb_major_version(), leveldb_minor_version());
    return text;
}

/* Takes the text. */
static int check(char *error) {
    if (error == NULL)
        return 0;
    peer_kv_failed(error);
    leveldb_free(error);
    return -1;
}

static void close_store(void *handle) {
    struct store *store = handle;
    if (store->db != NULL)
        leveldb_close(store->db);
    leveldb_readoptions_destroy(store->read);
    leveldb_writeoptions_destroy(store->synced);
    leveldb_options_destroy(store->options);
    free(store);
}

static void *open_store(const char *dir) {
    char *error = NULL;
    struct store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        peer_kv_failed("no memory");
        return NULL;
    }
    store->options = leveldb_options_create();
    leveldb_options_set_create_if_missing(store->options, 1);
    /* The values cannot be compressed: trying to would only cost time. */
    leveldb_options_set_compression(store->options, leveldb_no_compression);
    store->synced = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(store->synced, 1);
    store->read = leveldb_readoptions_create();
    store->db = leveldb_open(store->options, dir, &error);
    if (check(error) != 0) {
        close_store(store);
        return NULL;
    }
    return store;
}

static int put(void *handle, uint64_t key, const uint8_t *value, size_t len) {
    struct store *store = handle;
    char *error = NULL;
    /* LevelDB compares keys as text: big end first keeps them in the order of the numbers. */
    uint64_t name = htobe64(key);
    leveldb_put(store->db, store->synced, (const char *)&name, sizeof(name), (const char *)value,
                len, &error);
    return check(error);
}

static int load(void *handle, const uint64_t *keys, const uint8_t *values, size_t len,
                size_t count) {
    struct store *store = handle;
    char *error = NULL;
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    for (size_t i = 0; i < count; i++) {
        uint64_t name = htobe64(keys[i]);
        leveldb_writebatch_put(batch, (const char *)&name, sizeof(name),
                               (const char *)values + i * len, len);
    }
    leveldb_write(store->db, store->synced, batch, &error);
    leveldb_writebatch_destroy(batch);
    return check(error);
}

static int visit(void *handle, peer_kv_see *see, void *context) {
    struct store *store = handle;
    char *error = NULL;
    leveldb_iterator_t *entry = leveldb_create_iterator(store->db, store->read);
    for (leveldb_iter_seek_to_first(entry); leveldb_iter_valid(entry); leveldb_iter_next(entry)) {
        size_t key_len, len;
        uint64_t name = 0;
        const char *key = leveldb_iter_key(entry, &key_len);
        const char *value = leveldb_iter_value(entry, &len);
        memcpy(&name, key, key_len < sizeof(name) ? key_len : sizeof(name));
        see(context, be64toh(name), (const uint8_t *)value, len);
    }
    leveldb_iter_get_error(entry, &error);
    leveldb_iter_destroy(entry);
    return check(error);
}

const struct peer_kv_library peer_leveldb = {
    .version = version,
    .open = open_store,
    .close = close_store,
    .put = put,
    .load = load,
    .visit = visit,
};
