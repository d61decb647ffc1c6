/*
 * The key-value store of durum for C: LevelDB's functions by their own names. A program that uses
 * LevelDB's C interface (version 1.23) runs on it when it is linked with -ldurum_kv instead of
 * -lleveldb; its source stays as it is.
 *
 * Conventions
 *
 * 1. Ownership. A `..._create` or `..._open` gives an object that its `..._destroy`, `..._close` or
 *    `..._release` takes back; all of these take NULL. What a function returns as `char *` belongs
 *    to the caller and goes with leveldb_free().
 * 2. Errors. `errptr` leads to a NULL or to a message that an earlier call put there. A failed
 *    call frees that and puts its own message; a call that succeeds leaves it alone. A message
 *    begins with its kind, as in "IO error: ", and is LevelDB's where LevelDB has one.
 *    durum_kv_error_code() tells which kind of failure the thread's latest one was.
 * 3. Booleans are `uint8_t`: 0 is false.
 * 4. Bytes are a pointer and a length; a NULL of length 0 is no bytes.
 * 5. Threads. Databases, snapshots and comparators may be used by several threads at once; other
 *    objects by one at a time.
 * 6. Durability. A write is durable when it returns, with `sync` or without, unless the database
 *    was opened with durum_kv_options_set_buffered(), or `durum kv set DIR durability=buffered` was
 *    said of it: then writes without `sync` are durable soon after. Those in two halves
 *    (durum_kv_put_begin() and so on) are durable when they were waited for.
 * 7. Options that concern how LevelDB works (caches, filters, blocks, files, compression,
 *    environments, loggers) are accepted and have no effect.
 */
#ifndef DURUM_KV_H
#define DURUM_KV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Files and locks are names only, as in LevelDB. */
typedef struct leveldb_t leveldb_t;
typedef struct leveldb_cache_t leveldb_cache_t;
typedef struct leveldb_comparator_t leveldb_comparator_t;
typedef struct leveldb_env_t leveldb_env_t;
typedef struct leveldb_filelock_t leveldb_filelock_t;
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;
typedef struct leveldb_iterator_t leveldb_iterator_t;
typedef struct leveldb_logger_t leveldb_logger_t;
typedef struct leveldb_options_t leveldb_options_t;
typedef struct leveldb_randomfile_t leveldb_randomfile_t;
typedef struct leveldb_readoptions_t leveldb_readoptions_t;
typedef struct leveldb_seqfile_t leveldb_seqfile_t;
typedef struct leveldb_snapshot_t leveldb_snapshot_t;
typedef struct leveldb_writablefile_t leveldb_writablefile_t;
typedef struct leveldb_writebatch_t leveldb_writebatch_t;
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;

/* ---- databases ---------------------------------------------------------------------------- */

/* Opens the database in the directory `name`, which is a store of durum's and belongs to it. NULL
 * if it is not there and may not be made, or is there and may not be, or has another comparator. */
leveldb_t *leveldb_open(const leveldb_options_t *options, const char *name, char **errptr);

/* Closes it. Iterators and snapshots that are left see nothing from then on; they may be given back
 * later. A transaction that is left keeps it open. */
void leveldb_close(leveldb_t *db);

void leveldb_put(leveldb_t *db, const leveldb_writeoptions_t *options, const char *key,
                 size_t keylen, const char *val, size_t vallen, char **errptr);

/* A key that is not there is no error. */
void leveldb_delete(leveldb_t *db, const leveldb_writeoptions_t *options, const char *key,
                    size_t keylen, char **errptr);

/* Makes all changes of the batch, or none. A NULL is no changes. */
void leveldb_write(leveldb_t *db, const leveldb_writeoptions_t *options,
                   leveldb_writebatch_t *batch, char **errptr);

/* NULL if the key is not there; no error then. */
char *leveldb_get(leveldb_t *db, const leveldb_readoptions_t *options, const char *key,
                  size_t keylen, size_t *vallen, char **errptr);

leveldb_iterator_t *leveldb_create_iterator(leveldb_t *db, const leveldb_readoptions_t *options);

const leveldb_snapshot_t *leveldb_create_snapshot(leveldb_t *db);
void leveldb_release_snapshot(leveldb_t *db, const leveldb_snapshot_t *snapshot);

/* NULL if there is no property of that name. docs/tutorials/kv.md lists them. */
char *leveldb_property_value(leveldb_t *db, const char *propname);

void leveldb_approximate_sizes(leveldb_t *db, int num_ranges, const char *const *range_start_key,
                               const size_t *range_start_key_len,
                               const char *const *range_limit_key,
                               const size_t *range_limit_key_len, uint64_t *sizes);

/* Frees what no snapshot needs any more, in the whole database. */
void leveldb_compact_range(leveldb_t *db, const char *start_key, size_t start_key_len,
                           const char *limit_key, size_t limit_key_len);

/* Removes the directory of a database that nobody has open. What is no database stays; no error. */
void leveldb_destroy_db(const leveldb_options_t *options, const char *name, char **errptr);

/* Repairs the store's registry, and reads every record. Where nothing is, it makes an
 * empty database. */
void leveldb_repair_db(const leveldb_options_t *options, const char *name, char **errptr);

/* ---- iterators ---------------------------------------------------------------------------- */

void leveldb_iter_destroy(leveldb_iterator_t *iterator);
uint8_t leveldb_iter_valid(const leveldb_iterator_t *iterator);
void leveldb_iter_seek_to_first(leveldb_iterator_t *iterator);
void leveldb_iter_seek_to_last(leveldb_iterator_t *iterator);
void leveldb_iter_seek(leveldb_iterator_t *iterator, const char *k, size_t klen);
void leveldb_iter_next(leveldb_iterator_t *iterator);
void leveldb_iter_prev(leveldb_iterator_t *iterator);

/* The bytes stay until the iterator is destroyed; NULL where it is not valid. */
const char *leveldb_iter_key(const leveldb_iterator_t *iterator, size_t *klen);
const char *leveldb_iter_value(const leveldb_iterator_t *iterator, size_t *vlen);

/* The failure of the last step. */
void leveldb_iter_get_error(const leveldb_iterator_t *iterator, char **errptr);

/* ---- batches ------------------------------------------------------------------------------ */

leveldb_writebatch_t *leveldb_writebatch_create(void);
void leveldb_writebatch_destroy(leveldb_writebatch_t *batch);
void leveldb_writebatch_clear(leveldb_writebatch_t *batch);
void leveldb_writebatch_put(leveldb_writebatch_t *batch, const char *key, size_t klen,
                            const char *val, size_t vlen);
void leveldb_writebatch_delete(leveldb_writebatch_t *batch, const char *key, size_t klen);
void leveldb_writebatch_iterate(const leveldb_writebatch_t *batch, void *state,
                                void (*put)(void *, const char *k, size_t klen, const char *v,
                                            size_t vlen),
                                void (*deleted)(void *, const char *k, size_t klen));
void leveldb_writebatch_append(leveldb_writebatch_t *destination,
                               const leveldb_writebatch_t *source);

/* ---- options ------------------------------------------------------------------------------ */

leveldb_options_t *leveldb_options_create(void);
void leveldb_options_destroy(leveldb_options_t *options);
/* The comparator lives until the database is closed. */
void leveldb_options_set_comparator(leveldb_options_t *options, leveldb_comparator_t *comparator);
void leveldb_options_set_create_if_missing(leveldb_options_t *options, uint8_t wanted);
void leveldb_options_set_error_if_exists(leveldb_options_t *options, uint8_t wanted);
/* Every record is checked when the database is opened. */
void leveldb_options_set_paranoid_checks(leveldb_options_t *options, uint8_t wanted);

enum { leveldb_no_compression = 0, leveldb_snappy_compression = 1 };

/* Without effect. */
void leveldb_options_set_filter_policy(leveldb_options_t *options, leveldb_filterpolicy_t *policy);
void leveldb_options_set_env(leveldb_options_t *options, leveldb_env_t *env);
void leveldb_options_set_info_log(leveldb_options_t *options, leveldb_logger_t *logger);
void leveldb_options_set_write_buffer_size(leveldb_options_t *options, size_t bytes);
void leveldb_options_set_max_open_files(leveldb_options_t *options, int files);
void leveldb_options_set_cache(leveldb_options_t *options, leveldb_cache_t *cache);
void leveldb_options_set_block_size(leveldb_options_t *options, size_t bytes);
void leveldb_options_set_block_restart_interval(leveldb_options_t *options, int interval);
void leveldb_options_set_max_file_size(leveldb_options_t *options, size_t bytes);
void leveldb_options_set_compression(leveldb_options_t *options, int compression);

leveldb_readoptions_t *leveldb_readoptions_create(void);
void leveldb_readoptions_destroy(leveldb_readoptions_t *options);
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t *options, uint8_t wanted);
/* Without effect. */
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t *options, uint8_t wanted);
/* NULL: what is there now. The snapshot lives as long as the options are used. */
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t *options,
                                      const leveldb_snapshot_t *snapshot);

leveldb_writeoptions_t *leveldb_writeoptions_create(void);
void leveldb_writeoptions_destroy(leveldb_writeoptions_t *options);
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t *options, uint8_t wanted);

/* ---- comparators -------------------------------------------------------------------------- */

/* `compare` gives a number below, equal to or above 0, is called by several threads, and must not
 * use the database; `name` gives a string, which is stored with the database. */
leveldb_comparator_t *leveldb_comparator_create(void *state, void (*destructor)(void *),
                                                int (*compare)(void *, const char *a, size_t alen,
                                                               const char *b, size_t blen),
                                                const char *(*name)(void *));
void leveldb_comparator_destroy(leveldb_comparator_t *comparator);

/* ---- without effect ----------------------------------------------------------------------- */

leveldb_filterpolicy_t *leveldb_filterpolicy_create(
    void *state, void (*destructor)(void *),
    char *(*create_filter)(void *, const char *const *key_array, const size_t *key_length_array,
                           int num_keys, size_t *filter_length),
    uint8_t (*key_may_match)(void *, const char *key, size_t length, const char *filter,
                             size_t filter_length),
    const char *(*name)(void *));
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t *policy);
leveldb_filterpolicy_t *leveldb_filterpolicy_create_bloom(int bits_per_key);

leveldb_cache_t *leveldb_cache_create_lru(size_t capacity);
void leveldb_cache_destroy(leveldb_cache_t *cache);

leveldb_env_t *leveldb_create_default_env(void);
void leveldb_env_destroy(leveldb_env_t *env);
/* A directory that is there; NULL if it cannot be made. */
char *leveldb_env_get_test_directory(leveldb_env_t *env);

/* ---- the rest ----------------------------------------------------------------------------- */

void leveldb_free(void *ptr);
int leveldb_major_version(void);
int leveldb_minor_version(void);

/* ---- what LevelDB does not have ----------------------------------------------------------- */

/* Kinds of failures. */
enum {
    DURUM_KV_OK = 0,
    DURUM_KV_IO_ERROR = 1,
    DURUM_KV_INVALID_ARGUMENT = 2,
    DURUM_KV_CORRUPTION = 3,
    /* A file or directory that the operation needs; a key that is not there is no failure. */
    DURUM_KV_NOT_FOUND = 4
};

/* The kind of the calling thread's latest failure. */
int durum_kv_error_code(void);

/* As in "1.2.3". */
const char *durum_kv_version(void);

/* Writes without `sync` need not be durable when they return. The end of the machine, or of the
 * process, may take those of the last 10 ms. */
void durum_kv_options_set_buffered(leveldb_options_t *options, uint8_t wanted);

/* Opened for reading only, which needs no right to write: every write fails as an invalid argument.
 * The database has to be there. Where a service serves it, any number of programs may do so at the
 * same time. */
void durum_kv_options_set_read_only(leveldb_options_t *options, uint8_t wanted);

/* "shadow", "hybrid" or "twin": the engine of a database that is made. 0 if there is none of that
 * name. */
uint8_t durum_kv_options_set_engine(leveldb_options_t *options, const char *name);

/* Makes every write durable that has returned before: buffered ones, and those in flight. */
void durum_kv_sync(leveldb_t *db, char **errptr);

/* The bytes of keys and values in a batch. */
size_t durum_kv_writebatch_size(const leveldb_writebatch_t *batch);

/*
 * Looks up `count` keys, any of them several times; all values are of one moment. The keys are
 * looked up in groups, which costs less than a row of leveldb_get(). `vals[i]` is NULL and
 * `vallens[i]` 0 where keys[i] is not there; each of the others goes with leveldb_free(). If it
 * fails all are NULL. `vals` and `vallens` must not be NULL, unless `count` is 0.
 */
void durum_kv_multi_get(leveldb_t *db, const leveldb_readoptions_t *options, size_t count,
                        const char *const *keys, const size_t *keylens, char **vals,
                        size_t *vallens, char **errptr);

/*
 * Gives `count` keys values, one pair after the other; durable as leveldb_put() is. It is no batch:
 * a reader, a crash or a failure may come between any two pairs, and what is there then is the
 * first ones, up to some pair, each as a whole. It costs less than a row of leveldb_put() or a
 * batch: several pairs share a fence or a sync.
 */
void durum_kv_multi_put(leveldb_t *db, const leveldb_writeoptions_t *options, size_t count,
                        const char *const *keys, const size_t *keylens, const char *const *vals,
                        const size_t *vallens, char **errptr);

/*
 * Writes in two halves. These return when readers see the change; durum_kv_wait() waits on the same
 * thread, by the number that they give, until it is durable, and all that the thread has written
 * before. 0 is durable, and what a failure gives. On another thread it waits for nothing: that one
 * calls durum_kv_sync(). What the thread does in between, the next write above all, hides the time
 * that the media take.
 *
 * After a crash a write is there as a whole or not at all; of those that a thread has begun at most
 * the last one is missing, and none is there without all those before it. A write that nobody waits
 * for becomes durable with the thread's next one, with durum_kv_sync(), or when the database is
 * closed. It is durable at once where other threads write to the store, on a file system, if it
 * is larger than about a kilobyte, on other engines than "shadow", and where buffered writes wait.
 */
uint64_t durum_kv_put_begin(leveldb_t *db, const char *key, size_t keylen, const char *val,
                            size_t vallen, char **errptr);
uint64_t durum_kv_delete_begin(leveldb_t *db, const char *key, size_t keylen, char **errptr);
uint64_t durum_kv_write_begin(leveldb_t *db, leveldb_writebatch_t *batch, char **errptr);
void durum_kv_wait(leveldb_t *db, uint64_t in_flight, char **errptr);

/*
 * A transaction sees what it has written, and makes it durable as a whole. Other writers wait until
 * it has ended; readers do not. It ends on the thread that began it, before the database is closed,
 * and that thread does not write to the database past it.
 */
typedef struct durum_kv_transaction_t durum_kv_transaction_t;

durum_kv_transaction_t *durum_kv_transaction_begin(leveldb_t *db, char **errptr);
char *durum_kv_transaction_get(const durum_kv_transaction_t *transaction, const char *key,
                               size_t keylen, size_t *vallen, char **errptr);
void durum_kv_transaction_put(durum_kv_transaction_t *transaction, const char *key, size_t keylen,
                              const char *val, size_t vallen);
void durum_kv_transaction_delete(durum_kv_transaction_t *transaction, const char *key,
                                 size_t keylen);
/* Both end it, whatever comes of it. */
void durum_kv_transaction_commit(durum_kv_transaction_t *transaction,
                                 const leveldb_writeoptions_t *options, char **errptr);
void durum_kv_transaction_abort(durum_kv_transaction_t *transaction);

#ifdef __cplusplus
}
#endif

#endif
