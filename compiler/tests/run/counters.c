// What nvl_counters tells: those of durum_thread_stats, of all threads.
// RUN: %levels %s
#include <stddef.h>
#include "inputs/test.h"

#define SAME(member)                                                                               \
    _Static_assert(offsetof(struct nvl_counters, member) == offsetof(struct durum_stats, member) && \
                       sizeof(struct nvl_counters) == sizeof(struct durum_stats),                  \
                   "nvl.h and durum.h do not say the same")
SAME(fences);
SAME(write_backs);
SAME(streamed_lines);
SAME(syncs);
SAME(bytes_logged);
SAME(bytes_written);
SAME(commits);
SAME(aborts);

static unsigned long long lines(const struct nvl_counters *counters) {
    return counters->write_backs + counters->streamed_lines;
}

int main(void) {
    struct nvl_counters before, after;
    nvl_heap_t *heap = nvl_create("heap");
    nvl long *p = nvl_alloc_nv(heap, 100, long);
    nvl_set_root(heap, p);
    nvl_counters(&before);
    p[0] = 1;
    nvl_counters(&after);
    CHECK(after.fences == before.fences + 1 && lines(&after) == lines(&before) + 1);
    CHECK(after.commits == before.commits && after.syncs == before.syncs);
    nvl_counters(&before);
#pragma nvl atomic heap(heap)
    for (int i = 0; i < 100; i++)
        p[i] = i;
    nvl_counters(&after);
    CHECK(after.commits == before.commits + 1 && after.aborts == before.aborts);
    CHECK(after.fences > before.fences && lines(&after) > lines(&before));
    CHECK(after.bytes_logged > before.bytes_logged && after.bytes_written > before.bytes_written);
    nvl_close(heap);
    return 0;
}
