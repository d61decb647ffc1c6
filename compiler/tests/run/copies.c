// Structs with pointers are copied with their counts: into NVM, within it, by memcpy, by loops; and passed by value.
// RUN: %levels %s
#include <string.h>
#include "inputs/test.h"

struct pair {
    nvl long *one, *two;
    long n;
};
struct table {
    struct pair pairs[4];
    nvl long *nvl single;
    double plain[16];
};
struct box {
    nvl long *only;
};

__attribute__((noinline)) static long sum(struct pair pair) {
    pair.n += *pair.one;
    return pair.n + *pair.two;
}
__attribute__((noinline)) static struct pair make(nvl_heap_t *heap, long n) {
    struct pair pair = {nvl_alloc_nv(heap, 1, long), nvl_alloc_nv(heap, 1, long), n};
    *pair.one = n * 10;
    *pair.two = n * 100;
    return pair;
}
__attribute__((noinline)) static void fill(nvl_heap_t *heap, nvl struct table *t) {
    t->pairs[0] = make(heap, 1);
    t->pairs[1] = t->pairs[0];
    struct pair local[2] = {make(heap, 2), t->pairs[1]};
    memcpy(&t->pairs[2], local, sizeof local);
    t->single = t->pairs[2].one;
    double plain[16];
    for (int i = 0; i < 16; i++)
        plain[i] = i;
    memcpy(t->plain, plain, sizeof plain);
    memmove(&t->plain[1], &t->plain[0], 8 * sizeof(double));
    memset(&t->plain[12], 0, 4 * sizeof(double));
}
// One pointer: the optimizer would like to make a number of it.
__attribute__((noinline)) static void move(nvl struct box *to, nvl struct box *from) { *to = *from; }
__attribute__((noinline)) static void scrub(void) {
    volatile char stack[8192];
    memset((char *)stack, 0, sizeof stack);
}

static void check(nvl struct table *t) {
    for (int i = 0; i < 2; i++)
        CHECK(sum(t->pairs[i]) == 111 && sum(t->pairs[i]) == 111 && t->pairs[i].n == 1);
    CHECK(sum(t->pairs[2]) == 222 && sum(t->pairs[3]) == 111 && *t->single == 20);
    CHECK(t->plain[0] == 0 && t->plain[1] == 0 && t->plain[8] == 7 && t->plain[9] == 9 && t->plain[12] == 0);
}
static void work(nvl_heap_t *heap) { fill(heap, nvl_get_root(heap, struct table)); }
static void in_transaction(nvl_heap_t *heap) {
    nvl struct table *t = nvl_get_root(heap, struct table);
#pragma nvl atomic heap(heap)
    {
        t->pairs[0] = t->pairs[2];
        memset(&t->pairs[1], 0, 3 * sizeof t->pairs[0]);
        memset(t->plain, 0, sizeof t->plain);
        t->single = NULL;
        kill(getpid(), SIGKILL);
    }
}

static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl_set_root(heap, nvl_alloc_nv(heap, 1, struct table));
    nvl_close(heap);
}
static void first(void) {
    nvl_heap_t *heap = nvl_open("heap");
    check(nvl_get_root(heap, struct table));
    nvl_close(heap);
}
static void last(void) {
    nvl_heap_t *heap = nvl_open("heap");
    nvl struct table *t = nvl_get_root(heap, struct table);
    check(t);
    // The first pair is counted twice more than its first place says.
    memset(&t->pairs[0], 0, sizeof t->pairs[0]);
    scrub();
    CHECK(nvl_collect(heap) == 0);
    CHECK(sum(t->pairs[1]) == 111 && sum(t->pairs[3]) == 111);
    nvl struct box *boxes = nvl_alloc_nv(heap, 2, struct box);
    boxes[0].only = t->single;
    move(&boxes[1], &boxes[0]);
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    killed(work);
    done(first);
    killed(in_transaction);
    done(last);
    return 0;
}
