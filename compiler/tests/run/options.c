// Programs give the same with every option that leaves a part of NVL-C out, as long as nothing crashes; what was
// allocated without counts stays.
// RUN: %levels %s
// RUN: %levels %s -fnvl-no-transactions
// RUN: %levels %s -fnvl-no-clauses
// RUN: %levels %s -fnvl-no-clobber -fnvl-no-checks
// RUN: %levels %s -fnvl-no-counts -DUNCOUNTED
// RUN: %levels %s -fnvl-no-counts -fnvl-no-transactions -fnvl-no-checks -fnvl-relaxed -DLOST
#include "inputs/test.h"

enum { rows = 10, large = 20000 };
struct node {
    long value;
    nvl struct node *next;
    nvl struct node *nvl_wp back;
    nvl long *large;
};

// Puts `rows` nodes in front, each with a row that is too large for a log, and lets them go again, but for the last
// one.
__attribute__((noinline)) static void change(nvl_heap_t *heap, nvl struct node *root) {
    for (long i = 0; i < rows; i++) {
#pragma nvl atomic heap(heap) clobber(root->value)
        {
            nvl struct node *made = nvl_alloc_nv(heap, 1, struct node);
            made->value = i;
            made->next = root->next;
            made->back = root;
            root->next = made;
            root->value = i;
        }
        root->next->large = nvl_alloc_nv(heap, large, long);
        for (long j = 0; j < large; j++)
            root->next->large[j] = i;
    }
    root->next->next = NULL;
    root->back = root->next;
}
static void is_changed(nvl struct node *root) {
    CHECK(root->value == rows - 1 && root->next->value == rows - 1 && root->next->next == NULL);
    CHECK(root->next->large[0] == rows - 1 && root->next->large[large - 1] == rows - 1);
    CHECK(root->back == root->next && root->next->back == root);
}
static void work(void) {
    nvl_heap_t *heap = nvl_open("heap");
    nvl struct node *root = nvl_get_root(heap, struct node);
    change(heap, root);
    is_changed(root);
    nvl_close(heap);
}
static void check(void) {
    nvl_heap_t *heap = nvl_open("heap");
    nvl struct node *root = nvl_get_root(heap, struct node);
#ifdef LOST
    // Nothing has made it durable.
    CHECK(root->value == 0 && root->next == NULL);
    nvl_close(heap);
    return;
#endif
    is_changed(root);
    root->next = NULL;
    nvl_close(heap);

    heap = nvl_open("heap");
    root = nvl_get_root(heap, struct node);
#ifdef UNCOUNTED
    CHECK(root->back != NULL && root->back->value == rows - 1 && root->back->large[7] == rows - 1);
#else
    CHECK(root->back == NULL);
#endif
    nvl_close(heap);
}
static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl_set_root(heap, nvl_alloc_nv(heap, 1, struct node));
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    done(work);
    done(check);
    return 0;
}
