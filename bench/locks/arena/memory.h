/* Memory of malloc, or of a file that is mapped, which nobody makes durable: plain C. With FLUSH1,
 * which names an instruction, each line that a section has written is written back once, and one
 * fence ends it: the least that durability costs, without atomicity. With JUSTDO, which does so,
 * too, each store is made durable by itself, behind an entry that says what is stored where
 * (Izraelevitz, ASPLOS 2016). Neither knows after a crash what is allocated. */
#ifndef MEMORY_H
#define MEMORY_H

void *arena_alloc(size_t size);
void arena_free(void *object, size_t size);

#if defined(FLUSH1)
void arena_wrote(void *start, size_t size);
void arena_commit(void);
#define WROTE_(start, size) arena_wrote((start), (size))
#define BEGIN(lock) ((void)(lock))
#define COMMIT() arena_commit()
#define BEFORE_(start, from, size) ((void)0)
#elif defined(JUSTDO)
void arena_lock(void *lock);
void arena_log(void *start, const void *from, size_t size);
void arena_wrote(void *start, size_t size);
#define WROTE_(start, size) arena_wrote((start), (size))
#define BEGIN(lock) arena_lock(lock)
#define COMMIT() arena_lock(NULL)
#define BEFORE_(start, from, size) arena_log((start), (from), (size))
#else
#define WROTE_(start, size) ((void)0)
#define BEGIN(lock) ((void)(lock))
#define COMMIT() ((void)0)
#define BEFORE_(start, from, size) ((void)0)
#endif

#define SET(place, value)                                                                          \
    do {                                                                                           \
        __typeof__(place) value_ = (value);                                                        \
        BEFORE_((void *)&(place), &value_, sizeof(place));                                         \
        (place) = value_;                                                                          \
        WROTE_((void *)&(place), sizeof(place));                                                   \
    } while (0)
#define SET_RELEASE(place, value)                                                                  \
    do {                                                                                           \
        void *value_ = (value);                                                                    \
        BEFORE_((void *)&(place), &value_, sizeof(place));                                         \
        atomic_store_explicit(&(place), value_, memory_order_release);                             \
        WROTE_((void *)&(place), sizeof(place));                                                   \
    } while (0)
#define INIT(place, value) SET(place, value)
#define FILL(start, byte, size)                                                                    \
    do {                                                                                           \
        BEFORE_((start), NULL, (size));                                                            \
        memset((start), (byte), (size));                                                           \
        WROTE_((start), (size));                                                                   \
    } while (0)
#define NEW(type) ((type *)arena_alloc(sizeof(type)))
#define DROP(object) arena_free((object), sizeof *(object))

#endif
