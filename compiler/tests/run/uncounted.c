// A module without counts beside one with them: what the first one allocates stays, whoever stores and drops pointers
// to it, and its stores are as durable as others.
// RUN: mkdir -p %t && %durumcc -Wall -Wextra -Werror -O2 -I%prefix/include -DCOUNTED -c %s -o %t/counted.o
// RUN: %durumcc -Wall -Wextra -Werror -O2 -I%prefix/include -fnvl-no-counts -c %s -o %t/uncounted.o
// RUN: rm -rf %t/heap && %durumcc %t/counted.o %t/uncounted.o -o %t/program && cd %t && ./program
#include "inputs/test.h"

struct node {
    long value;
    nvl struct node *next;
    nvl struct node *other;
};

nvl struct node *make(nvl_heap_t *heap, long value);
void link_to(nvl struct node *from, nvl struct node *to);
void drop(nvl struct node *from);

#ifdef COUNTED
static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl_set_root(heap, nvl_alloc_nv(heap, 1, struct node));
    nvl_close(heap);
}
// Stored here and dropped there, and the reverse; a transaction of this module that does not commit.
static void work(nvl_heap_t *heap) {
    nvl struct node *root = nvl_get_root(heap, struct node);
    nvl struct node *one = make(heap, 1), *two = make(heap, 2);
    root->next = one;
    drop(root);
    link_to(root, one);
    root->next = NULL;
    root->next = one;
    link_to(one, two);
    root->other = two;
    root->other = NULL;
#pragma nvl atomic heap(heap)
    {
        link_to(one, one);
        kill(getpid(), SIGKILL);
    }
}
static void check(void) {
    for (int times = 0; times < 3; times++) {
        nvl_heap_t *heap = nvl_open("heap");
        nvl struct node *root = nvl_get_root(heap, struct node);
        CHECK(root->other == NULL && root->next->value == 1);
        CHECK(root->next->next->value == 2 && root->next->next->next == NULL);
        nvl struct node *counted = nvl_alloc_nv(heap, 1, struct node);
        counted->next = root->next;
        root->other = counted;
        root->other = NULL;
        nvl_close(heap);
    }
}

int main(void) {
    done(set_up);
    killed(work);
    done(check);
    return 0;
}
#else
nvl struct node *make(nvl_heap_t *heap, long value) {
    nvl struct node *made = nvl_alloc_nv(heap, 1, struct node);
    made->value = value;
    return made;
}
void link_to(nvl struct node *from, nvl struct node *to) { from->next = to; }
void drop(nvl struct node *from) { from->next = NULL; }
#endif
