/* The memory of plain programs. */
#include "nvl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

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
