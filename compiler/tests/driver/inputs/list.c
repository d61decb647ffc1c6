#include <nvl.h>

struct list {
    int value;
    nvl struct list *next;
};

int main(void) {
    nvl_heap_t *heap = nvl_create("list.nvl");
    nvl struct list *head = nvl_alloc_nv(heap, 1, struct list);
    nvl_set_root(heap, head);
#pragma nvl atomic heap(heap)
    head->value = 1;
    nvl_close(heap);
    heap = nvl_create("list.nvl", 1 << 20);
    nvl_close(heap);
    heap = nvl_create("list.nvl", 1 << 20, 0644);
    nvl_close(heap);
    return 0;
}
