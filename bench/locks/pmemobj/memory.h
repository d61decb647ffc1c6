/* A pool of libpmemobj, used by hand: each section is a transaction. */
#ifndef MEMORY_H
#define MEMORY_H

#include <libpmemobj.h>

void pmemobj_section_begin(void);
void pmemobj_section_end(void);
/* Ends the program, if the code is not 0. */
void done(int code);
void *allocated(size_t size);

#define BEGIN(lock) ((void)(lock), pmemobj_section_begin())
#define COMMIT() pmemobj_section_end()
#define SET(place, value)                                                                          \
    do {                                                                                           \
        done(pmemobj_tx_add_range_direct((const void *)&(place), sizeof(place)));                  \
        (place) = (value);                                                                         \
    } while (0)
#define SET_RELEASE(place, value)                                                                  \
    do {                                                                                           \
        done(pmemobj_tx_add_range_direct((const void *)&(place), sizeof(place)));                  \
        atomic_store_explicit(&(place), (value), memory_order_release);                            \
    } while (0)
#define INIT(place, value) ((void)((place) = (value)))
#define FILL(start, byte, size)                                                                    \
    do {                                                                                           \
        done(pmemobj_tx_add_range_direct((start), (size)));                                        \
        memset((start), (byte), (size));                                                           \
    } while (0)
#define NEW(type) ((type *)allocated(sizeof(type)))
#define DROP(object) done(pmemobj_tx_free(pmemobj_oid(object)))

#endif
