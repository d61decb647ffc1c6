#include "../kernel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A file with holes: room for any kernel. */
#define FILE_SIZE ((size_t)1 << 30)
#define LINE ((size_t)64)

/* What is given again, each thread's own: the kernels' nodes, which all take a line. */
struct free_block {
    struct free_block *next;
};
static _Thread_local struct free_block *freed;
static _Thread_local struct counts counted;

/* NULL where malloc gives the memory. */
static _Atomic(char *) next_line;
static char *end;

/* Nanoseconds that each fence takes more. */
static unsigned long fence_delay;

void memory_delay(unsigned long fence_ns) {
    fence_delay = fence_ns;
}

void memory_open(const char *path) {
    if (!*path)
        return;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, FILE_SIZE) != 0) {
        perror(path);
        exit(1);
    }
    char *start = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    end = start + FILE_SIZE;
    atomic_store(&next_line, start);
}

void *memory_root(size_t size) {
    if (end)
        return arena_alloc(size);
    void *root = aligned_alloc(LINE, (size + LINE - 1) & ~(LINE - 1));
    if (!root)
        abort();
    return memset(root, 0, size);
}

void memory_counts(struct counts *counts) {
    *counts = counted;
}

void *arena_alloc(size_t size) {
    if (!end) {
        void *object = malloc(size);
        if (!object)
            abort();
        return object;
    }
    if (size <= LINE && freed) {
        struct free_block *block = freed;
        freed = block->next;
        return block;
    }
    char *object = atomic_fetch_add(&next_line, (ptrdiff_t)((size + LINE - 1) & ~(LINE - 1)));
    if (object + size > end)
        abort();
    return object;
}

void arena_free(void *object, size_t size) {
    if (!end) {
        free(object);
    } else if (size <= LINE) {
        struct free_block *block = object;
        block->next = freed;
        freed = block;
    }
}

#if defined(FLUSH1) || defined(JUSTDO)
static void write_back(char *line) {
#ifdef FLUSH1
    __asm__ volatile(FLUSH1 " %0" : "+m"(*line));
#else
    __asm__ volatile(JUSTDO " %0" : "+m"(*line));
#endif
    counted.write_backs++;
}

static unsigned long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long)time.tv_sec * 1000000000 + (unsigned long)time.tv_nsec;
}

static void delay_fence(void) {
    if (fence_delay == 0)
        return;
    for (unsigned long end = now() + fence_delay; now() < end;)
        __asm__ volatile("pause");
}

static void fence(void) {
    __asm__ volatile("sfence" ::: "memory");
    counted.fences++;
    delay_fence();
}

static void write_back_all(char *start, size_t size) {
    for (char *line = (char *)((uintptr_t)start & ~(LINE - 1)); line < start + size; line += LINE)
        write_back(line);
}
#endif

#ifdef FLUSH1
/* Lines of the section, each written back once, at its end. What does not fit is written back at
 * once. */
#define LINES 64
static _Thread_local char *lines[LINES];
static _Thread_local int lines_count;

void arena_wrote(void *start, size_t size) {
    char *line = (char *)((uintptr_t)start & ~(LINE - 1));
    counted.bytes += size;
    if (size > LINE * LINES / 2) {
        write_back_all(start, size);
        return;
    }
    for (; line < (char *)start + size; line += LINE) {
        int at = 0;
        while (at < lines_count && lines[at] != line)
            at++;
        if (at == LINES)
            write_back(line);
        else if (at == lines_count)
            lines[lines_count++] = line;
    }
}

void arena_commit(void) {
    for (int i = 0; i < lines_count; i++)
        write_back(lines[i]);
    lines_count = 0;
    fence();
}
#endif

#ifdef JUSTDO
/* What a thread is about to store, or the lock that it has. Two in turn: the one that counts is not
 * written over. A store of many bytes is one whose value needs no entry: what is filled can be
 * filled again. */
struct entry {
    _Alignas(64) void *place;
    uint64_t value, size, number;
    void *lock;
};
static _Thread_local struct entry *entries;
static _Thread_local uint64_t entry_number;
static _Thread_local void *held;

static void record(void *place, uint64_t value, size_t size) {
    if (!entries)
        entries = arena_alloc(2 * sizeof *entries);
    struct entry *entry = &entries[++entry_number & 1];
    entry->place = place;
    entry->value = value;
    entry->size = size;
    entry->lock = held;
    entry->number = entry_number;
    counted.bytes += sizeof *entry;
    write_back((char *)entry);
    fence();
}

void arena_lock(void *lock) {
    held = lock;
    record(NULL, 0, 0);
}

void arena_log(void *start, const void *from, size_t size) {
    uint64_t value = 0;
    if (from)
        memcpy(&value, from, size < sizeof value ? size : sizeof value);
    record(start, value, size);
}

void arena_wrote(void *start, size_t size) {
    counted.bytes += size;
    write_back_all(start, size);
    fence();
}
#endif
