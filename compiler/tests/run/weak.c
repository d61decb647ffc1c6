// Weak pointers: they give null once their target is freed, alone, in arrays, and after struct copies.
// RUN: %levels %s
#include "inputs/test.h"

struct node {
    long value;
    nvl struct node *next;
    nvl struct node *nvl_wp back;
    nvl struct node *nvl_wp some[2];
};

// The optimizer keeps no pointer to it here, so it can be freed.
__attribute__((noinline)) static void build(nvl_heap_t *heap, nvl struct node *root) {
    nvl struct node *child = nvl_alloc_nv(heap, 1, struct node);
    child->value = 7;
    root->next = child;
    child->back = root;
    root->back = child;
    root->some[1] = child;
    root->some[0] = root;
}
__attribute__((noinline)) static void copy(nvl_heap_t *heap, nvl struct node *root) {
    nvl struct node *other = nvl_alloc_nv(heap, 1, struct node);
    *other = *root;
    CHECK(other->back == root->next && other->some[1]->value == 7 && other->some[0] == root);
    root->next->next = other;
}

int main(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl struct node *root = nvl_alloc_nv(heap, 1, struct node);
    nvl_set_root(heap, root);
    build(heap, root);
    copy(heap, root);
    CHECK(root->back == root->next && root->back->back == root && root->some[1]->value == 7);
    nvl_close(heap);

    heap = nvl_open("heap");
    root = nvl_get_root(heap, struct node);
    CHECK(root->back == root->next && root->back->value == 7 && root->some[0] == root);
    CHECK(root->next->next->next == root->next && root->next->next->some[1] == root->next);
    // The copy is what leads to the child besides the root.
    root->next->next->next = NULL;
    root->next = NULL;
    nvl_close(heap);

    heap = nvl_open("heap");
    root = nvl_get_root(heap, struct node);
    CHECK(root->back == NULL && root->some[1] == NULL && root->some[0] == root && root->next == NULL);
    root->some[0] = NULL;
    nvl_close(heap);
    return 0;
}
