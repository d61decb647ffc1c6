/*
 * A program that knows LevelDB's C interface only. It is compiled once, against leveldb/c.h, and
 * linked with either library: it must see the same. Arguments: a directory to work in; or the
 * address of a service, and what stands between that and a name.
 */
#include <leveldb/c.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define FAILED()                                                                                   \
    do {                                                                                           \
        CHECK(error != NULL);                                                                      \
        leveldb_free(error);                                                                       \
        error = NULL;                                                                              \
    } while (0)

static leveldb_t *db;
static leveldb_options_t *options;
static leveldb_readoptions_t *reading;
static leveldb_writeoptions_t *writing;

static int is(const char *key, const char *expected) {
    return holds(db, reading, key, expected);
}

static void put(const char *key, const char *value) {
    leveldb_put(db, writing, key, strlen(key), value, strlen(value), &error);
    FINE();
}

static int stands_at(leveldb_iterator_t *entries, const char *key, const char *value) {
    size_t key_len, value_len;
    const char *found_key, *found_value;
    if (!leveldb_iter_valid(entries))
        return key == NULL;
    found_key = leveldb_iter_key(entries, &key_len);
    found_value = leveldb_iter_value(entries, &value_len);
    return key != NULL && key_len == strlen(key) && memcmp(found_key, key, key_len) == 0 &&
           value_len == strlen(value) && memcmp(found_value, value, value_len) == 0;
}

struct seen {
    char text[200];
};

static void see_put(void *state, const char *k, size_t klen, const char *v, size_t vlen) {
    struct seen *seen = state;
    sprintf(seen->text + strlen(seen->text), "+%.*s=%.*s ", (int)klen, k, (int)vlen, v);
}

static void see_deleted(void *state, const char *k, size_t klen) {
    struct seen *seen = state;
    sprintf(seen->text + strlen(seen->text), "-%.*s ", (int)klen, k);
}

static void open_with(leveldb_options_t *with, const char *path) {
    db = leveldb_open(with, path, &error);
}

static void values_and_batches(void) {
    leveldb_writebatch_t *batch = leveldb_writebatch_create(), *more = leveldb_writebatch_create();
    struct seen seen = {""};
    CHECK(is("nothing", NULL));
    put("one", "1");
    put("", "no key");
    put("empty", "");
    put("one", "eins");
    CHECK(is("one", "eins") && is("", "no key") && is("empty", ""));
    leveldb_delete(db, writing, "empty", 5, &error);
    leveldb_delete(db, writing, "missing", 7, &error);
    FINE();
    CHECK(is("empty", NULL));
    leveldb_writebatch_put(batch, "gone", 4, "x", 1);
    leveldb_writebatch_clear(batch);
    leveldb_writebatch_put(batch, "two", 3, "2", 1);
    leveldb_writebatch_delete(batch, "", 0);
    leveldb_writebatch_put(more, "three", 5, "3", 1);
    leveldb_writebatch_append(batch, more);
    leveldb_writebatch_iterate(batch, &seen, see_put, see_deleted);
    CHECK(strcmp(seen.text, "+two=2 - +three=3 ") == 0);
    leveldb_write(db, writing, batch, &error);
    FINE();
    CHECK(is("two", "2") && is("three", "3") && is("", NULL) && is("gone", NULL));
    leveldb_writebatch_destroy(batch);
    leveldb_writebatch_destroy(more);
}

static void iterators_and_snapshots(void) {
    const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
    leveldb_iterator_t *entries = leveldb_create_iterator(db, reading);
    put("two", "zwei");
    put("four", "4");
    CHECK(!leveldb_iter_valid(entries));
    leveldb_iter_seek_to_first(entries);
    CHECK(stands_at(entries, "one", "eins"));
    leveldb_iter_next(entries);
    CHECK(stands_at(entries, "three", "3"));
    leveldb_iter_next(entries);
    CHECK(stands_at(entries, "two", "2"));
    leveldb_iter_next(entries);
    CHECK(stands_at(entries, NULL, NULL));
    leveldb_iter_seek_to_last(entries);
    leveldb_iter_prev(entries);
    CHECK(stands_at(entries, "three", "3"));
    leveldb_iter_seek(entries, "p", 1);
    CHECK(stands_at(entries, "three", "3"));
    leveldb_iter_seek(entries, "zzz", 3);
    CHECK(stands_at(entries, NULL, NULL));
    leveldb_iter_get_error(entries, &error);
    FINE();
    leveldb_iter_destroy(entries);
    leveldb_readoptions_set_snapshot(reading, snapshot);
    leveldb_readoptions_set_verify_checksums(reading, 1);
    leveldb_readoptions_set_fill_cache(reading, 0);
    CHECK(is("two", "2") && is("four", NULL));
    leveldb_readoptions_set_snapshot(reading, NULL);
    CHECK(is("two", "zwei") && is("four", "4"));
    leveldb_release_snapshot(db, snapshot);
}

static void sizes_and_properties(void) {
    const char *starts[] = {"a", "k00000000000010000"}, *limits[] = {"k00000000000010000", "z"};
    size_t start_lens[] = {1, 18}, limit_lens[] = {18, 1};
    uint64_t sizes[2];
    char key[32], value[100], *property;
    unsigned seed = 1;
    int number;
    size_t at;
    leveldb_writeoptions_set_sync(writing, 0);
    for (number = 0; number < 20000; number++) {
        int len = sprintf(key, "k%017d", number);
        for (at = 0; at < sizeof(value); at++)
            value[at] = (char)(seed = seed * 1103515245 + 12345);
        leveldb_put(db, writing, key, (size_t)len, value, sizeof(value), &error);
        FINE();
    }
    leveldb_writeoptions_set_sync(writing, 1);
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    leveldb_approximate_sizes(db, 2, starts, start_lens, limits, limit_lens, sizes);
    CHECK(sizes[0] > 500000 && sizes[0] < 3000000);
    CHECK(sizes[1] > 500000 && sizes[1] < 3000000);
    CHECK(leveldb_property_value(db, "nosuchprop") == NULL);
    property = leveldb_property_value(db, "leveldb.stats");
    CHECK(property != NULL);
    leveldb_free(property);
}

/* Longer keys first. */
static int compare(void *state, const char *a, size_t alen, const char *b, size_t blen) {
    (void)state;
    if (alen != blen)
        return alen > blen ? -1 : 1;
    return memcmp(a, b, alen);
}

static const char *compare_name(void *state) {
    (void)state;
    return "longer first";
}

static int destroyed;

static void count_destroyed(void *state) {
    (void)state;
    destroyed++;
}

static void comparators(const char *path) {
    leveldb_comparator_t *comparator =
        leveldb_comparator_create(NULL, count_destroyed, compare, compare_name);
    leveldb_options_t *with = leveldb_options_create();
    leveldb_iterator_t *entries;
    leveldb_options_set_create_if_missing(with, 1);
    leveldb_options_set_comparator(with, comparator);
    open_with(with, path);
    FINE();
    put("aa", "2");
    put("b", "1");
    put("ccc", "3");
    entries = leveldb_create_iterator(db, reading);
    leveldb_iter_seek_to_first(entries);
    CHECK(stands_at(entries, "ccc", "3"));
    leveldb_iter_next(entries);
    CHECK(stands_at(entries, "aa", "2"));
    leveldb_iter_destroy(entries);
    leveldb_close(db);
    open_with(options, path);
    CHECK(db == NULL);
    FAILED();
    leveldb_destroy_db(with, path, &error);
    FINE();
    leveldb_options_destroy(with);
    leveldb_comparator_destroy(comparator);
    CHECK(destroyed == 1);
}

static void *put_many(void *which) {
    leveldb_writeoptions_t *own = leveldb_writeoptions_create();
    char key[32], *failed = NULL;
    int number;
    for (number = 0; number < 500; number++) {
        int len = sprintf(key, "thread %s %d", (const char *)which, number);
        leveldb_put(db, own, key, (size_t)len, key, (size_t)len, &failed);
    }
    leveldb_writeoptions_destroy(own);
    return failed;
}

static void threads(void) {
    pthread_t running[3];
    const char *names[] = {"a", "b", "c"};
    void *failed;
    int at;
    for (at = 0; at < 3; at++)
        CHECK(pthread_create(&running[at], NULL, put_many, (void *)names[at]) == 0);
    for (at = 0; at < 3; at++) {
        pthread_join(running[at], &failed);
        CHECK(failed == NULL);
    }
    CHECK(is("thread a 0", "thread a 0") && is("thread c 499", "thread c 499"));
}

int main(int argc, char **argv) {
    char path[1000], other[1000];
    leveldb_cache_t *cache = leveldb_cache_create_lru(1 << 20);
    leveldb_filterpolicy_t *policy = leveldb_filterpolicy_create_bloom(10);
    leveldb_env_t *env = leveldb_create_default_env();
    if (argc < 2 || leveldb_major_version() < 1)
        return 2;
    snprintf(path, sizeof(path), "%s%sdb", argv[1], argc > 2 ? argv[2] : "/");
    snprintf(other, sizeof(other), "%s%sother", argv[1], argc > 2 ? argv[2] : "/");
    options = leveldb_options_create();
    reading = leveldb_readoptions_create();
    writing = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(writing, 1);
    leveldb_options_set_cache(options, cache);
    leveldb_options_set_filter_policy(options, policy);
    leveldb_options_set_env(options, env);
    leveldb_options_set_info_log(options, NULL);
    leveldb_options_set_write_buffer_size(options, 1 << 20);
    leveldb_options_set_paranoid_checks(options, 1);
    leveldb_options_set_max_open_files(options, 50);
    leveldb_options_set_block_size(options, 4096);
    leveldb_options_set_block_restart_interval(options, 8);
    leveldb_options_set_max_file_size(options, 3 << 20);
    leveldb_options_set_compression(options, leveldb_no_compression);

    open_with(options, path);
    CHECK(db == NULL);
    FAILED();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_error_if_exists(options, 1);
    open_with(options, path);
    FINE();
    values_and_batches();
    leveldb_close(db);
    open_with(options, path);
    CHECK(db == NULL);
    FAILED();
    leveldb_options_set_error_if_exists(options, 0);
    open_with(options, path);
    FINE();
    CHECK(is("one", "eins") && is("", NULL));
    iterators_and_snapshots();
    sizes_and_properties();
    threads();
    leveldb_close(db);
    leveldb_repair_db(options, path, &error);
    FINE();
    open_with(options, path);
    FINE();
    CHECK(is("four", "4") && is("thread b 250", "thread b 250"));
    leveldb_close(db);
    comparators(other);
    leveldb_destroy_db(options, path, &error);
    FINE();
    leveldb_options_set_create_if_missing(options, 0);
    open_with(options, path);
    CHECK(db == NULL);
    FAILED();
    leveldb_options_destroy(options);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    leveldb_cache_destroy(cache);
    leveldb_filterpolicy_destroy(policy);
    leveldb_env_destroy(env);
    printf("all checks passed\n");
    return 0;
}
