// The harness's own payload: a counter in a file on ext4 that a power cut must not turn back.
//
//   counter write FILE          appends records until the power goes; prints "durable N"
//   counter write-unsynced FILE the same, mapped without MAP_SYNC: has to lose data (the canary)
//   counter append FILE         the same with pwrite and fdatasync, for a disk
//   counter append-unflushed FILE  brings records to the disk and not out of its cache: has to lose
//   data counter verify FILE         with DURABLE=N in the environment: at least N records, all
//   whole
//
// The file is sparse: its blocks come from page faults. MAP_SYNC promises that a fault returns only
// after the block's allocation is durable; without it a record can be flushed into a block that no
// inode names after the cut, and the harness has to notice.
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE 64u // bytes of a record
#define FILE_BYTES (256u << 20)
#define FIRST_RECORD 4096u
#define RECORD_STRIDE 4096u // a record a page: faults, and with them block allocations, never stop
#define RECORDS_MAX ((FILE_BYTES - FIRST_RECORD) / RECORD_STRIDE)
#define RECORDS_PER_REPORT 16u
#define PAUSE_US 200 // between records: the file lasts for 13 s of writing

enum flush { CLWB, CLFLUSHOPT, CLFLUSH };

static enum flush detect_flush(void) {
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        if (ebx & bit_CLWB)
            return CLWB;
        if (ebx & bit_CLFLUSHOPT)
            return CLFLUSHOPT;
    }
    return CLFLUSH;
}

__attribute__((target("clwb,clflushopt"))) static void persist_line(enum flush flush, void *line) {
    if (flush == CLWB)
        __builtin_ia32_clwb(line);
    else if (flush == CLFLUSHOPT)
        __builtin_ia32_clflushopt(line);
    else
        __builtin_ia32_clflush(line);
    __builtin_ia32_sfence();
}

static void die(const char *what) {
    printf("counter: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t *record(char *base, uint64_t n) {
    return (uint64_t *)(base + FIRST_RECORD + n * RECORD_STRIDE);
}

static uint64_t check_word(uint64_t n, unsigned word) {
    uint64_t x = (n * 8 + word + 1) * 0x9e3779b97f4a7c15u;
    return x ^ (x >> 29);
}

static char *map(const char *path, int open_flags, int protection, int map_flags) {
    int fd = open(path, open_flags | O_CLOEXEC, 0644);
    if (fd < 0)
        die(path);
    if ((open_flags & O_CREAT) && ftruncate(fd, FILE_BYTES) != 0)
        die("ftruncate");
    // Size and name are durable before the first record.
    if ((open_flags & O_CREAT) && fsync(fd) != 0)
        die("fsync");
    char *base = mmap(NULL, FILE_BYTES, protection, map_flags, fd, 0);
    if (base == MAP_FAILED)
        die("mmap (MAP_SYNC needs a DAX file system)");
    close(fd);
    return base;
}

static int write_records(const char *path, int synced) {
    char *base = map(path, O_RDWR | O_CREAT, PROT_READ | PROT_WRITE,
                     synced ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED);
    enum flush flush = detect_flush();
    volatile uint64_t *count = (volatile uint64_t *)base;
    printf("writing with %s from %llu\n",
           flush == CLWB         ? "clwb"
           : flush == CLFLUSHOPT ? "clflushopt"
                                 : "clflush",
           (unsigned long long)*count);
    if (!synced) {
        // The count keeps its block, so that only the records' blocks are at stake.
        *count = *count;
        persist_line(flush, base);
        if (msync(base, 4096, MS_SYNC) != 0)
            die("msync");
    }
    while (*count < RECORDS_MAX) {
        uint64_t n = *count, *slot = record(base, n);
        for (unsigned word = 0; word < LINE / 8; word++)
            slot[word] = check_word(n, word);
        // ORDER: the record is durable before the count admits it; else verify reads an empty line.
        persist_line(flush, slot);
        *count = n + 1;
        // ORDER: the count is durable before it is reported; else the report promises too much.
        persist_line(flush, base);
        if ((n + 1) % RECORDS_PER_REPORT == 0)
            printf("durable %llu\n", (unsigned long long)n + 1);
        usleep(PAUSE_US);
    }
    printf("the file is full\n");
    return 1;
}

static void append(int fd, const void *bytes, size_t len, uint64_t offset, int flushed) {
    if (pwrite(fd, bytes, len, (off_t)offset) != (ssize_t)len)
        die("pwrite");
    if (flushed && fdatasync(fd) != 0)
        die("fdatasync");
    if (!flushed && sync_file_range(fd, (off_t)offset, (off_t)len,
                                    SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) != 0)
        die("sync_file_range");
}

static int append_records(const char *path, int flushed) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        die(path);
    if (ftruncate(fd, FILE_BYTES) != 0)
        die("ftruncate");
    uint64_t count = 0;
    if (pread(fd, &count, sizeof count, 0) != sizeof count)
        die("pread");
    // The count has its block from here on: what the canary loses of it was in the disk's cache.
    if (pwrite(fd, &count, sizeof count, 0) != sizeof count)
        die("pwrite");
    if (fsync(fd) != 0)
        die("fsync");
    while (count < RECORDS_MAX) {
        uint64_t slot[LINE / 8];
        for (unsigned word = 0; word < LINE / 8; word++)
            slot[word] = check_word(count, word);
        // ORDER: the record is durable before the count admits it, and the count before it is
        // reported.
        append(fd, slot, sizeof slot, FIRST_RECORD + count * RECORD_STRIDE, flushed);
        count++;
        append(fd, &count, sizeof count, 0, flushed);
        if (count % RECORDS_PER_REPORT == 0)
            printf("durable %llu\n", (unsigned long long)count);
        usleep(PAUSE_US);
    }
    printf("the file is full\n");
    return 1;
}

static int verify(const char *path) {
    const char *text = getenv("DURABLE");
    uint64_t promised = text ? strtoull(text, NULL, 10) : 0;
    char *base = map(path, O_RDONLY, PROT_READ, MAP_SHARED);
    uint64_t count = *(uint64_t *)base;
    if (count < promised || count > RECORDS_MAX) {
        printf("counter: %llu records, expected at least %llu\n", (unsigned long long)count,
               (unsigned long long)promised);
        return 3;
    }
    for (uint64_t n = 0; n < count; n++)
        for (unsigned word = 0; word < LINE / 8; word++)
            if (record(base, n)[word] != check_word(n, word)) {
                printf("counter: record %llu of %llu is damaged at word %u\n",
                       (unsigned long long)n, (unsigned long long)count, word);
                return 3;
            }
    printf("verified %llu records, at least %llu promised\n", (unsigned long long)count,
           (unsigned long long)promised);
    return 0;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        return write_records(argv[2], 1);
    if (argc == 3 && strcmp(argv[1], "write-unsynced") == 0)
        return write_records(argv[2], 0);
    if (argc == 3 && strcmp(argv[1], "append") == 0)
        return append_records(argv[2], 1);
    if (argc == 3 && strcmp(argv[1], "append-unflushed") == 0)
        return append_records(argv[2], 0);
    if (argc == 3 && strcmp(argv[1], "verify") == 0)
        return verify(argv[2]);
    printf("usage: counter write|write-unsynced|append|append-unflushed|verify FILE\n");
    return 2;
}
