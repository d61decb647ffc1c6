// A heap is open beside copies of it, which have its addresses (NVL-C, HPDC'16, section 3.4): they move, and their
// pointers, counted and weak, lead to their own objects.
// RUN: %levels %s
#include "inputs/test.h"

struct link {
    nvl struct link *next;
    nvl struct link *nvl_wp back;
    nvl struct link *nvl_wp last;
    long value;
};

static void fill(nvl_heap_t *heap) {
    nvl struct link *first = nvl_alloc_nv(heap, 1, struct link);
    nvl_set_root(heap, first);
    first->next = nvl_alloc_nv(heap, 1, struct link);
    first->next->value = 2;
    first->next->back = first;
    first->last = first->next;
}

static void check(nvl_heap_t *heap, long value) {
    CHECK(heap != NULL);
    nvl struct link *first = nvl_get_root(heap, struct link);
    CHECK(first->next->value == value && first->next->back == first && first->last == first->next);
}

static void side_by_side(void) {
    nvl_heap_t *heap = nvl_create("original");
    CHECK(heap != NULL);
    fill(heap);
    nvl_close(heap);
    CHECK(system("cp -r original copy && cp -r original second") == 0);
    heap = nvl_open("original");
    nvl_heap_t *copy = nvl_open("copy"), *second = nvl_open("second");
    check(heap, 2);
    check(copy, 2);
    check(second, 2);
    nvl_get_root(copy, struct link)->next->value = 3;
    nvl_get_root(second, struct link)->next->value = 4;
    check(heap, 2);
    check(copy, 3);
    check(second, 4);
    nvl_close(copy);
    nvl_close(heap);
    nvl_close(second);
}

// The one that moved is where it is now.
static void again(void) {
    nvl_heap_t *second = nvl_open("second"), *heap = nvl_open("original");
    check(heap, 2);
    check(second, 4);
    nvl_close(heap);
    nvl_close(second);
}

int main(void) {
    done(side_by_side);
    done(again);
    return 0;
}
