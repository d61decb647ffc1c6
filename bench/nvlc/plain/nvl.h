/* In the place of NVL-C's nvl.h: makes plain C of the kernels, with the same functions on memory
 * that nobody makes durable. Clang ignores `#pragma nvl`. With FLUSH1 defined, which names the
 * instruction, what a kernel says that it has written is written back, and nothing more is done:
 * the least that durability costs in place, without atomicity. With STREAM1 the kernel works in
 * memory of its own, and what it has written is copied to the file past the cache: the least that
 * it costs large ranges. */
#ifndef NVL_H
#define NVL_H

#include <stddef.h>

#define nvl

/* Memory of malloc, or of a file that is mapped. */
typedef struct heap nvl_heap_t;
/* An empty path stands for malloc. NULL on failure. */
nvl_heap_t *nvl_create(const char *path);
void *heap_alloc(nvl_heap_t *heap, size_t size);
void heap_free(nvl_heap_t *heap, void *memory, size_t size);

#define nvl_alloc_nv(heap, n, type) ((type *)heap_alloc((heap), (size_t)(n) * sizeof(type)))
#define nvl_set_root(heap, ptr) ((void)(heap), (void)(ptr))
static inline size_t nvl_collect(nvl_heap_t *heap) {
    (void)heap;
    return 0;
}

struct nvl_counters {
    unsigned long long fences, write_backs, streamed_lines, syncs;
    unsigned long long bytes_logged, bytes_written, commits, aborts;
};
extern struct nvl_counters heap_counters;
static inline void nvl_counters(struct nvl_counters *counters) {
    *counters = heap_counters;
}

#define DROPPED(heap, ptr) heap_free((heap), (ptr), sizeof *(ptr))

#if defined FLUSH1 || defined STREAM1
/* The descriptor of a heap on a disk, whose lines need not be written back; -1 in memory. */
extern int heap_disk;
void heap_sync(void);
#ifdef STREAM1
void heap_wrote(void *start, size_t size);
#else
static inline void heap_wrote(void *start, size_t size) {
    char *line = (char *)((size_t)start & ~(size_t)63);
    heap_counters.bytes_written += size;
    for (; heap_disk < 0 && line < (char *)start + size; line += 64) {
        __asm__ volatile(FLUSH1 " %0" : "+m"(*line));
        heap_counters.write_backs++;
    }
}
#endif
static inline void heap_durable(void) {
    if (heap_disk >= 0) {
        heap_sync();
        return;
    }
    __asm__ volatile("sfence" ::: "memory");
    heap_counters.fences++;
}
#define WROTE(lvalue) heap_wrote(&(lvalue), sizeof(lvalue))
#define WROTE_ROW(start, n) heap_wrote((start), (size_t)(n) * sizeof *(start))
#define DURABLE() heap_durable()
#endif

#endif
