/* What durum_kv.h has beyond LevelDB. Arguments: as for store.c. */
#include <durum_kv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define FAILED(code)                                                                               \
    do {                                                                                           \
        CHECK(error != NULL && durum_kv_error_code() == code);                                     \
        leveldb_free(error);                                                                       \
        error = NULL;                                                                              \
    } while (0)

static leveldb_t *db;

static int is(const char *key, const char *expected) {
    return holds(db, NULL, key, expected);
}

static int property_is(const char *name, const char *expected) {
    char *found = leveldb_property_value(db, name);
    int equal = found != NULL && strcmp(found, expected) == 0;
    leveldb_free(found);
    return equal;
}

/* Each engine makes a database, and says so. */
static void engines(const char *place) {
    static const char *const names[] = {"shadow", "hybrid", "twin"};
    leveldb_options_t *options = leveldb_options_create();
    char path[4096];
    size_t at;
    leveldb_options_set_create_if_missing(options, 1);
    for (at = 0; at < sizeof(names) / sizeof(names[0]); at++) {
        CHECK(durum_kv_options_set_engine(options, names[at]) == 1);
        /* A name that means nothing changes nothing. */
        CHECK(durum_kv_options_set_engine(options, "steam") == 0);
        CHECK(durum_kv_options_set_engine(options, NULL) == 0);
        snprintf(path, sizeof(path), "%s%s", place, names[at]);
        db = leveldb_open(options, path, &error);
        FINE();
        CHECK(property_is("durum.engine", names[at]));
        leveldb_put(db, NULL, "key", 3, names[at], strlen(names[at]), &error);
        FINE();
        leveldb_close(db);
        /* It stays what it is. */
        CHECK(durum_kv_options_set_engine(options, "shadow") == 1);
        db = leveldb_open(options, path, &error);
        FINE();
        CHECK(property_is("durum.engine", names[at]) && is("key", names[at]));
        leveldb_close(db);
    }
    leveldb_options_destroy(options);
}

/* Writes without `sync` are there at once, and durable when durum_kv_sync() returns. */
static void buffered(const char *place) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_writeoptions_t *synced = leveldb_writeoptions_create();
    char path[4096], key[20];
    int at;
    leveldb_options_set_create_if_missing(options, 1);
    durum_kv_options_set_buffered(options, 1);
    leveldb_writeoptions_set_sync(synced, 1);
    snprintf(path, sizeof(path), "%sbuffered", place);
    db = leveldb_open(options, path, &error);
    FINE();
    for (at = 0; at < 100; at++) {
        const int len = snprintf(key, sizeof(key), "key %d", at);
        leveldb_put(db, at % 10 == 9 ? synced : NULL, key, (size_t)len, "value", 5, &error);
        FINE();
    }
    CHECK(is("key 98", "value"));
    durum_kv_sync(db, &error);
    FINE();
    /* Nothing is waiting any more; that is fine, too. */
    durum_kv_sync(db, &error);
    FINE();
    durum_kv_sync(NULL, &error);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    leveldb_close(db);
    durum_kv_options_set_buffered(options, 0);
    db = leveldb_open(options, path, &error);
    FINE();
    CHECK(is("key 0", "value") && is("key 98", "value") && is("key 99", "value"));
    leveldb_close(db);
    leveldb_writeoptions_destroy(synced);
    leveldb_options_destroy(options);
}

static void batches_and_transactions(const char *place) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    durum_kv_transaction_t *transaction;
    char path[4096];
    size_t len;
    char *found;
    CHECK(durum_kv_writebatch_size(batch) == 0 && durum_kv_writebatch_size(NULL) == 0);
    leveldb_writebatch_put(batch, "key", 3, "value", 5);
    leveldb_writebatch_delete(batch, "other", 5);
    CHECK(durum_kv_writebatch_size(batch) == 13);
    leveldb_writebatch_append(batch, batch);
    CHECK(durum_kv_writebatch_size(batch) == 26);
    leveldb_writebatch_clear(batch);
    CHECK(durum_kv_writebatch_size(batch) == 0);
    leveldb_writebatch_destroy(batch);

    leveldb_options_set_create_if_missing(options, 1);
    snprintf(path, sizeof(path), "%stransactions", place);
    db = leveldb_open(options, path, &error);
    FINE();
    transaction = durum_kv_transaction_begin(db, &error);
    FINE();
    durum_kv_transaction_put(transaction, "a", 1, "1", 1);
    found = durum_kv_transaction_get(transaction, "a", 1, &len, &error);
    CHECK(found != NULL && len == 1 && *found == '1' && is("a", NULL));
    leveldb_free(found);
    durum_kv_transaction_commit(transaction, NULL, &error);
    FINE();
    transaction = durum_kv_transaction_begin(db, &error);
    durum_kv_transaction_delete(transaction, "a", 1);
    CHECK(durum_kv_transaction_get(transaction, "a", 1, &len, &error) == NULL && error == NULL);
    durum_kv_transaction_abort(transaction);
    CHECK(is("a", "1"));
    CHECK(durum_kv_transaction_begin(NULL, &error) == NULL);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    leveldb_close(db);
    leveldb_options_destroy(options);
}

#define ROW 300

/* Many keys in a call: they are found in the order in which they are asked for. */
static void rows(const char *place) {
    static char texts[ROW][16];
    const char *keys[ROW + 2], *none[1] = {NULL};
    size_t keylens[ROW + 2], vallens[ROW + 2], at;
    char *vals[ROW + 2], path[4096];
    leveldb_options_t *options = leveldb_options_create();
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    leveldb_writeoptions_t *synced = leveldb_writeoptions_create();
    const leveldb_snapshot_t *snapshot;
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_writeoptions_set_sync(synced, 1);
    snprintf(path, sizeof(path), "%srows", place);
    db = leveldb_open(options, path, &error);
    FINE();
    for (at = 0; at < ROW; at++) {
        keylens[at] = (size_t)snprintf(texts[at], sizeof(texts[at]), "key %zu", at * 7 % ROW);
        keys[at] = texts[at];
    }
    /* Each key is its own value. */
    durum_kv_multi_put(db, NULL, ROW, keys, keylens, keys, keylens, &error);
    FINE();
    snapshot = leveldb_create_snapshot(db);
    leveldb_readoptions_set_snapshot(reading, snapshot);
    leveldb_readoptions_set_verify_checksums(reading, 1);
    durum_kv_multi_put(db, synced, 1, keys, keylens, none, &(size_t){0}, &error);
    FINE();
    /* One that is not there, and one that comes twice. */
    keys[ROW] = "key";
    keylens[ROW] = 3;
    keys[ROW + 1] = keys[5];
    keylens[ROW + 1] = keylens[5];
    durum_kv_multi_get(db, reading, ROW + 2, keys, keylens, vals, vallens, &error);
    FINE();
    for (at = 0; at < ROW + 2; at++) {
        if (at == ROW) {
            CHECK(vals[at] == NULL && vallens[at] == 0);
            continue;
        }
        CHECK(vallens[at] == keylens[at] && memcmp(vals[at], keys[at], keylens[at]) == 0);
        leveldb_free(vals[at]);
    }
    durum_kv_multi_get(db, NULL, 1, keys, keylens, vals, vallens, &error);
    FINE();
    /* An empty value is one. */
    CHECK(vals[0] != NULL && vallens[0] == 0);
    leveldb_free(vals[0]);
    leveldb_release_snapshot(db, snapshot);

    durum_kv_multi_get(db, NULL, 0, NULL, NULL, NULL, NULL, &error);
    durum_kv_multi_put(db, NULL, 0, NULL, NULL, NULL, NULL, &error);
    FINE();
    vals[0] = path;
    durum_kv_multi_get(NULL, NULL, 1, keys, keylens, vals, vallens, &error);
    CHECK(vals[0] == NULL);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    durum_kv_multi_get(db, NULL, 1, NULL, keylens, vals, vallens, &error);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    durum_kv_multi_get(db, NULL, 1, keys, keylens, NULL, vallens, &error);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    durum_kv_multi_put(db, NULL, 1, keys, keylens, NULL, keylens, &error);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    leveldb_close(db);
    leveldb_writeoptions_destroy(synced);
    leveldb_readoptions_destroy(reading);
    leveldb_options_destroy(options);
}

/* Writes in two halves are seen at once, and can be waited for in any order. */
static void in_flight(const char *place) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    char path[4096];
    uint64_t first, second;
    leveldb_options_set_create_if_missing(options, 1);
    snprintf(path, sizeof(path), "%sflights", place);
    db = leveldb_open(options, path, &error);
    FINE();
    first = durum_kv_put_begin(db, "a", 1, "1", 1, &error);
    FINE();
    second = durum_kv_put_begin(db, "b", 1, "2", 1, &error);
    FINE();
    CHECK(is("a", "1") && is("b", "2"));
    durum_kv_wait(db, second, &error);
    durum_kv_wait(db, first, &error);
    durum_kv_wait(db, 0, &error);
    FINE();
    first = durum_kv_delete_begin(db, "a", 1, &error);
    FINE();
    leveldb_writebatch_put(batch, "c", 1, "3", 1);
    leveldb_writebatch_delete(batch, "b", 1);
    second = durum_kv_write_begin(db, batch, &error);
    FINE();
    CHECK(durum_kv_write_begin(db, NULL, &error) == 0);
    FINE();
    durum_kv_wait(db, second, &error);
    FINE();
    CHECK(is("a", NULL) && is("b", NULL) && is("c", "3"));
    CHECK(durum_kv_put_begin(NULL, "a", 1, "1", 1, &error) == 0);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    CHECK(durum_kv_delete_begin(NULL, "a", 1, &error) == 0);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    CHECK(durum_kv_write_begin(NULL, batch, &error) == 0);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    durum_kv_wait(NULL, first, &error);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    /* Closing waits for what nobody has waited for. */
    durum_kv_put_begin(db, "d", 1, "4", 1, &error);
    FINE();
    leveldb_close(db);
    db = leveldb_open(options, path, &error);
    FINE();
    CHECK(is("c", "3") && is("d", "4"));
    leveldb_close(db);
    leveldb_writebatch_destroy(batch);
    leveldb_options_destroy(options);
}

/* Who may only read reads, and changes nothing. */
static void read_only(const char *place) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_t *reading = leveldb_options_create();
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_iterator_t *entries;
    char path[4096];
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_create_if_missing(reading, 1);
    durum_kv_options_set_read_only(reading, 1);
    durum_kv_options_set_read_only(NULL, 1);
    snprintf(path, sizeof(path), "%sread", place);
    CHECK(leveldb_open(reading, path, &error) == NULL);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    db = leveldb_open(options, path, &error);
    FINE();
    leveldb_put(db, NULL, "key", 3, "value", 5, &error);
    FINE();
    leveldb_close(db);

    db = leveldb_open(reading, path, &error);
    FINE();
    CHECK(is("key", "value") && is("other", NULL));
    entries = leveldb_create_iterator(db, NULL);
    leveldb_iter_seek_to_first(entries);
    CHECK(leveldb_iter_valid(entries));
    leveldb_iter_destroy(entries);
    leveldb_put(db, NULL, "other", 5, "value", 5, &error);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    leveldb_delete(db, NULL, "key", 3, &error);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    leveldb_writebatch_put(batch, "other", 5, "value", 5);
    leveldb_write(db, NULL, batch, &error);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    CHECK(durum_kv_transaction_begin(db, &error) == NULL);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    CHECK(is("key", "value") && is("other", NULL));
    leveldb_close(db);

    durum_kv_options_set_read_only(reading, 0);
    db = leveldb_open(reading, path, &error);
    FINE();
    leveldb_put(db, NULL, "other", 5, "value", 5, &error);
    FINE();
    leveldb_close(db);
    leveldb_writebatch_destroy(batch);
    leveldb_options_destroy(reading);
    leveldb_options_destroy(options);
}

/* What is left of a database that is closed does not keep it open, and sees nothing any more. */
static void left_behind(const char *place) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    leveldb_iterator_t *entries;
    const leveldb_snapshot_t *snapshot;
    char path[4096];
    size_t len;
    leveldb_options_set_create_if_missing(options, 1);
    snprintf(path, sizeof(path), "%sleft", place);
    db = leveldb_open(options, path, &error);
    FINE();
    leveldb_put(db, NULL, "key", 3, "value", 5, &error);
    FINE();
    entries = leveldb_create_iterator(db, NULL);
    leveldb_iter_seek_to_first(entries);
    CHECK(leveldb_iter_valid(entries));
    snapshot = leveldb_create_snapshot(db);
    leveldb_close(db);
    CHECK(!leveldb_iter_valid(entries) && leveldb_iter_key(entries, &len) == NULL && len == 0);
    leveldb_iter_next(entries);
    leveldb_iter_get_error(entries, &error);
    FAILED(DURUM_KV_INVALID_ARGUMENT);

    db = leveldb_open(options, path, &error);
    FINE();
    leveldb_readoptions_set_snapshot(reading, snapshot);
    CHECK(leveldb_get(db, reading, "key", 3, &len, &error) == NULL);
    FAILED(DURUM_KV_INVALID_ARGUMENT);
    leveldb_readoptions_set_snapshot(reading, NULL);
    CHECK(is("key", "value"));
    leveldb_iter_destroy(entries);
    leveldb_release_snapshot(db, snapshot);
    leveldb_close(db);
    leveldb_readoptions_destroy(reading);
    leveldb_options_destroy(options);
}

int main(int argc, char **argv) {
    /* Types that no function has, as in LevelDB. */
    leveldb_filelock_t *lock = NULL;
    leveldb_randomfile_t *random = NULL;
    leveldb_seqfile_t *sequential = NULL;
    leveldb_writablefile_t *writable = NULL;
    int major, minor, patch;
    char place[2000];
    CHECK(lock == NULL && random == NULL && sequential == NULL && writable == NULL);
    if (argc < 2)
        return 2;
    snprintf(place, sizeof(place), "%s%s", argv[1], argc > 2 ? argv[2] : "/");
    CHECK(sscanf(durum_kv_version(), "%d.%d.%d", &major, &minor, &patch) == 3);
    engines(place);
    buffered(place);
    batches_and_transactions(place);
    rows(place);
    in_flight(place);
    read_only(place);
    left_behind(place);
    printf("all checks passed\n");
    return 0;
}
