/* Everything that nvl.h has. */
#include <errno.h>
#include <nvl.h>

struct list {
    int value;
    nvl struct list *next;
    nvl struct list *nvl_wp back;
    nvl float *nvl row;
};

void fill(nvl float rows[3][4], nvl float *nvl *target);

static nvl struct list *first(nvl_heap_t *heap) {
    nvl struct list *found = nvl_get_root(heap, struct list);
    if (!found) {
        found = nvl_alloc_nv(heap, 2, struct list);
        nvl_set_root(heap, found);
    }
    return found;
}

static void count(nvl_heap_t *heap, nvl struct list *list) {
    nvl_heap_t *same = heap;
#pragma nvl atomic heap(same)
    list->value++;
}

int main(void) {
    nvl_heap_t *heap = nvl_open("heap");
    if (!heap && errno == ENOENT)
        heap = nvl_create("heap");
    if (!heap)
        heap = nvl_create("heap", 1000);
    nvl struct list *list = first(heap);
#pragma nvl atomic heap(heap) backup(list->value, list[0:2]) default(clobber)
    {
        list->value++;
        list->next = list->back;
    }
    count(heap, list);
    struct nvl_counters counters;
    nvl_counters(&counters);
    nvl_set_root(heap, NULL);
    nvl_set_concurrent(heap, nvl_collect(heap) > 0);
    nvl_close(heap);
    return counters.commits > 0;
}
