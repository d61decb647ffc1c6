/* The memory of plain programs. */
#include "nvl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>
#ifdef STREAM1
#include <immintrin.h>
#endif

/* A file with holes: room for any kernel. */
#define FILE_SIZE ((size_t)1 << 30)
#define TMPFS 0x01021994
#define LINE 64
/* What is given again. */
#define SMALL LINE

struct free_block {
    struct free_block *next;
};

struct heap {
    /* NULL where malloc gives the memory. */
    char *next;
    char *end;
    /* Of the one size that a kernel frees. */
    struct free_block *freed;
};

struct nvl_counters heap_counters;
int heap_disk = -1;

#ifdef STREAM1
/* What the kernel works in, and the file, in which everything has the same place. */
static char *working;
static char *home;

/* By one store, as durum does. */
__attribute__((target("avx512f"))) static void copy_lines_wide(char *to, const char *from,
                                                               size_t lines) {
    for (; lines > 0; --lines, to += LINE, from += LINE)
        _mm512_stream_si512((__m512i *)to, _mm512_load_si512(from));
}

static void copy_lines(char *to, const char *from, size_t lines) {
    for (size_t part = 0; part < lines * (LINE / 16); ++part)
        _mm_stream_si128((__m128i *)to + part, _mm_load_si128((const __m128i *)from + part));
}

void heap_wrote(void *start, size_t size) {
    char *from = (char *)((size_t)start & ~(size_t)(LINE - 1)), *end = (char *)start + size;
    char *to = home + (from - working);
    size_t lines = (size_t)(end - from + LINE - 1) / LINE;
    if (__builtin_cpu_supports("avx512f"))
        copy_lines_wide(to, from, lines);
    else
        copy_lines(to, from, lines);
    heap_counters.streamed_lines += lines;
    heap_counters.bytes_written += size;
}
#endif

nvl_heap_t *nvl_create(const char *path) {
    struct heap *heap = calloc(1, sizeof *heap);
    struct statfs system;
    if (!heap || !*path)
        return heap;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, FILE_SIZE) != 0 || fstatfs(file, &system) != 0)
        return NULL;
    heap->next = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (heap->next == MAP_FAILED)
        return NULL;
#ifdef STREAM1
    home = heap->next;
    working = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (working == MAP_FAILED)
        return NULL;
    heap->next = working;
#endif
    heap->end = heap->next + FILE_SIZE;
    if (system.f_type != TMPFS)
        heap_disk = file;
    return heap;
}

void *heap_alloc(nvl_heap_t *heap, size_t size) {
    if (!heap->next) {
        void *memory = calloc(1, size);
        if (!memory)
            abort();
        return memory;
    }
    if (heap->freed && size <= SMALL) {
        void *memory = heap->freed;
        heap->freed = heap->freed->next;
        return memset(memory, 0, size);
    }
    /* No small object shares a line with another. */
    void *memory = heap->next;
    heap->next += (size + LINE - 1) & ~(size_t)(LINE - 1);
    if (heap->next > heap->end)
        abort();
    return memory;
}

void heap_free(nvl_heap_t *heap, void *memory, size_t size) {
    if (!heap->next) {
        free(memory);
    } else if (size <= SMALL) {
        struct free_block *block = memory;
        block->next = heap->freed;
        heap->freed = block;
    }
}

void heap_sync(void) {
    if (fdatasync(heap_disk) != 0)
        abort();
    heap_counters.syncs++;
}
