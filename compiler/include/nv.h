/* Data that last, for programs with locks that `durumcc -fido` compiles (docs/tutorials/locks.md).
 *
 * What a thread does while it holds a lock is a section. Sections whose program was killed, or
 * whose machine lost its power, are completed when the heap is opened again.
 *
 * A program has one heap, a directory in memory that lasts (DAX) or in /dev/shm. It is opened by
 * nv_open, or by the first use of the heap if the environment has DURUM_HEAP. */
#ifndef NV_H
#define NV_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A global or static variable that lasts: `static durum_durable long count;`. It has its initial
 * value in a new heap, and is found by its name and that of its file in one that is there. */
#define durum_durable __attribute__((annotate("durum_durable")))

/* Opens the heap at `path`, or makes it, and completes its sections. 0, or -1 with errno: EINVAL
 * for what is no place for a heap, EIO for what the system or the data do not allow. Sections of
 * the function that calls it may not use its locals, where they have addresses. */
int nv_open(const char *path);

/* Why the latest nv_open of this thread has failed. Valid until the thread's next failure. */
const char *nv_error(void);

/* A section that no lock guards, for threads that share what they change with nobody: what is done
 * from the one call to the other is completed after a crash. They may be nested, also with locks,
 * and lie in different functions; the section ends with the last. For code that `durumcc -fido`
 * compiles; elsewhere they do not link. */
void durum_durable_begin(void);
void durum_durable_end(void);

/* The function returns with so many locks more than it was called with, or fewer: `durum_locks(+1)
 * void lock_cache(void);`. For files that call it; the one that defines it is checked, and what
 * does not agree does not link. */
#define durum_locks(change) __attribute__((annotate("durum_locks " #change)))

/* `size` bytes at `start` were written outside of sections, by `read` or by code that durumcc has
 * not compiled, and a later section of this thread links them: they are durable before it stores
 * anything. What does not lie in the heap is left as it is. */
void durum_own(const void *start, size_t size);

/* The program's root: `size` bytes, zeros at first, and the same ones from then on. Durable when
 * this returns. The program ends if the heap has a root of another size. */
void *nv_root(size_t size);

/* As malloc, calloc, realloc, strdup and free, in the heap. NULL and ENOMEM, if there is no room.
 * In a section, memory is taken with what the section stores next, and freed when it has ended: a
 * crash loses none. Outside, it is durable when they return; a crash before anything leads to new
 * memory leaves it taken. */
void *nv_malloc(size_t size) __attribute__((__malloc__, __alloc_size__(1)));
void *nv_calloc(size_t count, size_t size) __attribute__((__malloc__, __alloc_size__(1, 2)));
void *nv_realloc(void *object, size_t size) __attribute__((__alloc_size__(2)));
char *nv_strdup(const char *text) __attribute__((__malloc__));
void nv_free(void *object);

#ifdef __cplusplus
}
#endif
#endif
