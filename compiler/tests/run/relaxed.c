// With -fnvl-relaxed a store outside of transactions is lost in a crash, unless a transaction takes it along; pointers
// are durable in any case.
// RUN: %levels %s -fnvl-relaxed
// RUN: not %levels %s
#include "inputs/test.h"

struct node {
    long value;
    nvl struct node *next;
    long other[1000];
};

static void work(nvl_heap_t *heap) {
    nvl struct node *p = nvl_get_root(heap, struct node);
    p->other[900] = 1;
    p->next = p;
#pragma nvl atomic heap(heap)
    p->value = 2;
}

static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl_set_root(heap, nvl_alloc_nv(heap, 1, struct node));
    nvl_close(heap);
}
static void check(void) {
    nvl_heap_t *heap = nvl_open("heap");
    nvl struct node *p = nvl_get_root(heap, struct node);
    CHECK(p->next == p);
    CHECK(p->value == 2);
    CHECK(p->other[900] == 0);
    p->next = NULL;
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    killed(work);
    done(check);
    return 0;
}
