// The linked list of the paper, Figure 2, as it is printed there, runs.
// RUN: %levels %s
// RUN: %levels %s -fsanitize=undefined -fno-sanitize-recover=undefined
// RUN: %levels %s -flto -fuse-ld=lld
// RUN: %levels %s -flto=thin -fuse-ld=lld
#define remove remove_value
#include "../figures/figure2.c"
#undef remove
#include "inputs/test.h"

static void set_up(void) {
    nvl_heap_t *heap = nvl_create("foo.nvl");
    nvl_set_root(heap, nvl_alloc_nv(heap, 1, struct list));
    nvl_close(heap);
}
static void work(void) {
    for (int k = 1; k <= 5; k++)
        add(k);
    remove_value(2);
    remove_value(5);
    add(6);
    remove_value(7);
    _exit(0);
}
static void check(void) {
    int expected[] = {6, 4, 3, 1}, n = 0;
    nvl_heap_t *heap = nvl_open("foo.nvl");
    for (nvl struct list *p = nvl_get_root(heap, struct list)->next; p; p = p->next)
        CHECK(n < 4 && p->value == expected[n++]);
    CHECK(n == 4);
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    done(work);
    done(check);
    return 0;
}
