/*
 * Key-value stores on a disk: other people's libraries behind one set of functions.
 *
 * 1. A store owns what it finds or makes in an empty directory; close() closes it and removes
 * nothing.
 * 2. Functions that change the store return 0, or -1 with the cause in peer_kv_error() of the
 * calling thread.
 * 3. What a function changed is durable when it returns.
 * 4. Several threads may use a store at once, except for close().
 */
#ifndef DURUM_BENCH_KV_H
#define DURUM_BENCH_KV_H

#include <stddef.h>
#include <stdint.h>

/* Is shown an entry; the value stays until it returns. */
typedef void peer_kv_see(void *context, uint64_t key, const uint8_t *value, size_t len);

/* One library. */
struct peer_kv_library {
    /* Its name and version. */
    const char *(*version)(void);
    /* Opens a store; NULL with the cause in peer_kv_error(). */
    void *(*open)(const char *dir);
    void (*close)(void *store);
    /* Sets one value. */
    int (*put)(void *store, uint64_t key, const uint8_t *value, size_t len);
    /* Sets `count` values of `len` bytes, which follow each other, in one commit. */
    int (*load)(void *store, const uint64_t *keys, const uint8_t *values, size_t len, size_t count);
    /* Shows every entry. */
    int (*visit)(void *store, peer_kv_see *see, void *context);
};

extern const struct peer_kv_library peer_leveldb;
extern const struct peer_kv_library peer_lmdb;

/* The text of this thread's last error. */
const char *peer_kv_error(void);
/* Keeps the text of an error; -1. */
int peer_kv_failed(const char *text);

#endif
