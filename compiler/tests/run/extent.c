// Functions that store, called inside and outside of transactions: outside a store is durable when the function
// returns, inside it goes with the transaction.
// RUN: %levels %s
// RUN: %levels %s -g -DDIRECT
#include "inputs/test.h"

struct counters {
    long a, b, c;
    double row[8];
};

#ifndef DIRECT
__attribute__((noinline))
#endif
static void put(nvl struct counters *p, long value) {
    p->a = value;
    p->row[value & 7] += (double)value;
}
// For code of another file, and by a pointer.
__attribute__((noinline)) void put_all(nvl struct counters *p, long value) {
    put(p, value);
    p->b = value;
}
void (*volatile by_pointer)(nvl struct counters *, long) = put_all;

static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    CHECK(heap != NULL);
    nvl_set_root(heap, nvl_alloc_nv(heap, 1, struct counters));
    nvl_close(heap);
}
static void outside(nvl_heap_t *heap) {
    nvl struct counters *p = nvl_get_root(heap, struct counters);
    put(p, 1);
    put_all(p, 2);
    by_pointer(p, 3);
    p->c = 4;
}
static void inside_and_killed(nvl_heap_t *heap) {
    nvl struct counters *p = nvl_get_root(heap, struct counters);
#pragma nvl atomic heap(heap)
    {
        put(p, 11);
        put_all(p, 12);
        by_pointer(p, 13);
        p->c = 14;
        kill(getpid(), SIGKILL);
    }
}
static void inside_and_left(nvl_heap_t *heap) {
    nvl struct counters *p = nvl_get_root(heap, struct counters);
#pragma nvl atomic heap(heap)
    {
        put(p, 11);
        by_pointer(p, 13);
        p->c = 14;
        exit(0);
    }
}
static void inside(nvl_heap_t *heap) {
    nvl struct counters *p = nvl_get_root(heap, struct counters);
#pragma nvl atomic heap(heap)
    {
        put(p, 16);
        by_pointer(p, 23);
        p->c = 24;
    }
    put(p, 32);
}

static void check(long a, long b, long c, double row0, double row7) {
    nvl_heap_t *heap = nvl_open("heap");
    nvl struct counters *p = nvl_get_root(heap, struct counters);
    CHECK(p->a == a && p->b == b && p->c == c);
    CHECK(p->row[0] == row0 && p->row[7] == row7 && p->row[1] == 1 && p->row[2] == 2 && p->row[3] == 3);
    nvl_close(heap);
}

static void first(void) { check(3, 3, 4, 0, 0); }
static void last(void) { check(32, 23, 24, 48, 23); }

int main(void) {
    done(set_up);
    killed(outside);
    done(first);
    killed(inside_and_killed);
    done(first);
    CHECK(in_process(inside_and_left) == 0);
    done(first);
    killed(inside);
    done(last);
    return 0;
}
