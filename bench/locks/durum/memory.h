/* A pool of durum, used by hand: each section is a transaction. ENGINE says of which engine. With
 * FLIES each one is in flight until the next one commits. */
#ifndef MEMORY_H
#define MEMORY_H

#include <durum.h>

extern struct durum_pool *pool;
/* Ends the program, if the code is not DURUM_OK. */
static inline void done(int code) {
    if (__builtin_expect(code != DURUM_OK, 0)) {
        fprintf(stderr, "%s\n", durum_errormsg());
        exit(1);
    }
}
static inline void *allocated(size_t size) {
    void *object = durum_malloc(pool, NULL, size);
    if (__builtin_expect(!object, 0))
        done(durum_errorcode());
    return object;
}

#define BEGIN(lock) ((void)(lock), done(durum_tx_begin(pool)))
#ifdef FLIES
#define COMMIT()                                                                                   \
    do {                                                                                           \
        uint64_t in_flight_;                                                                       \
        done(durum_tx_commit_begin(&in_flight_));                                                  \
    } while (0)
#else
#define COMMIT() done(durum_tx_commit())
#endif
#define SET(place, value)                                                                          \
    do {                                                                                           \
        done(durum_tx_add((const void *)&(place), sizeof(place)));                                 \
        (place) = (value);                                                                         \
    } while (0)
#define SET_RELEASE(place, value)                                                                  \
    do {                                                                                           \
        done(durum_tx_add((const void *)&(place), sizeof(place)));                                 \
        atomic_store_explicit(&(place), (value), memory_order_release);                            \
    } while (0)
#define INIT(place, value) ((void)((place) = (value)))
#define FILL(start, byte, size)                                                                    \
    do {                                                                                           \
        done(durum_tx_add((start), (size)));                                                       \
        memset((start), (byte), (size));                                                           \
    } while (0)
#define NEW(type) ((type *)allocated(sizeof(type)))
#define DROP(object) done(durum_free(object))

#endif
