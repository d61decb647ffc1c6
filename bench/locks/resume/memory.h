/* What the language has, for code that durumcc completes after a crash. Nothing but allocations is
 * durum's. */
#ifndef MEMORY_H
#define MEMORY_H

#include <nv.h>

#define BEGIN(lock) ((void)(lock))
#define COMMIT() ((void)0)
#define SET(place, value) ((void)((place) = (value)))
#define SET_RELEASE(place, value) atomic_store_explicit(&(place), (value), memory_order_release)
#define INIT(place, value) SET(place, value)
#define FILL(start, byte, size) memset((start), (byte), (size))
#define NEW(type) ((type *)allocated(sizeof(type)))
#define DROP(object) nv_free(object)

static inline void *allocated(size_t size) {
    void *object = nv_malloc(size);
    if (!object)
        abort();
    return object;
}

#endif
