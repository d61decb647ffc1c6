#include "../kernel.h"

#include <durum.h>

void memory_open(const char *path) {
    if (nv_open(path) != 0) {
        fprintf(stderr, "%s\n", nv_error());
        exit(1);
    }
}

void *memory_root(size_t size) {
    return nv_root(size);
}

void memory_counts(struct counts *counts) {
    durum_stats stats;
    if (durum_thread_stats(&stats) != DURUM_OK)
        abort();
    *counts = (struct counts){stats.fences, stats.write_backs + stats.streamed_lines,
                              stats.bytes_written};
}

void memory_delay(unsigned long fence_ns) {
    durum_emulate_delays(0, fence_ns, 0);
}
