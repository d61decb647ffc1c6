// Functions get their arguments as they are when they are called from somewhere that does not know whether it is inside
// of a transaction: in registers, on the stack, structs, and any number of them. The places in the loops are such that
// each function has two versions.
// RUN: %levels %s
// RUN: %levels %s -g
#include <stdarg.h>
#include "inputs/test.h"

struct large {
    long a, b, row[6];
};
struct small {
    int a;
    double b;
};

__attribute__((noinline)) long one_large(nvl long *p, struct large s, int x) {
    for (long i = 0; i < s.b * 3; i++)
        p[i * 5 % 6] += s.row[i * 5 % 6] + x;
    return s.a + s.b;
}
__attribute__((noinline)) struct large two_large(struct large s, nvl long *p, struct large t) {
    for (long i = 0; i < s.a; i++)
        p[i * 5 % 6] += s.a - t.b;
    s.row[5] = t.row[0] + p[0];
    return s;
}
__attribute__((noinline)) long many(nvl long *p, long a, long b, long c, long d, long e, long f, long g, struct small s, double h) {
    for (long i = 0; i < a; i++)
        p[1 + i * 5 % 6] += a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7;
    return s.a + (long)s.b + (long)h;
}
__attribute__((noinline)) long any_number(nvl long *p, int count, ...) {
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        p[2 + i * (count - 3) * 5 % 6] += va_arg(list, long);
    va_end(list);
    return p[2];
}
__attribute__((noinline)) long any_number_and_large(nvl long *p, struct large s, int count, ...) {
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        p[3 + i * (count - 2) * 5 % 6] += va_arg(list, long) * s.row[i];
    va_end(list);
    return p[3];
}

__attribute__((noinline)) static void call_all(nvl long *p) {
    long (*volatile call_one)(nvl long *, struct large, int) = one_large;
    struct large (*volatile call_two)(struct large, nvl long *, struct large) = two_large;
    long (*volatile call_many)(nvl long *, long, long, long, long, long, long, long, struct small, double) = many;
    long (*volatile call_any)(nvl long *, int, ...) = any_number;
    long (*volatile call_both)(nvl long *, struct large, int, ...) = any_number_and_large;
    struct large s = {1, 2, {3, 4, 5, 6, 7, 8}}, t = {10, 20, {30, 40, 50, 60, 70, 80}};
    for (int i = 0; i < 4; i++)
        p[i] = 0;
    CHECK(call_one(p, s, 100) == 3 && p[0] == 103 && p[5] == 8 + 100);
    struct large result = call_two(s, p, t);
    CHECK(p[0] == 84 && result.a == 1 && result.row[4] == 7 && result.row[5] == 114 && s.row[5] == 8);
    CHECK(call_many(p, 1, 2, 3, 4, 5, 6, 7, (struct small){8, 9.0}, 10.0) == 27 && p[1] == 104 + 140);
    CHECK(call_any(p, 3, 1L, 10L, 100L) == 105 + 111);
    CHECK(call_both(p, t, 2, 1L, 2L) == 106 + 110);
    p[5] = 0;
}

static void work(nvl_heap_t *heap) {
    nvl long *p = nvl_get_root(heap, long);
    call_all(p);
#pragma nvl atomic heap(heap)
    call_all(p);
}

static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl_set_root(heap, nvl_alloc_nv(heap, 6, long));
    nvl_close(heap);
}
static void check(void) {
    nvl_heap_t *heap = nvl_open("heap");
    nvl long *p = nvl_get_root(heap, long);
    CHECK(p[0] == 84 && p[1] == 244 && p[2] == 216 && p[3] == 216 && p[5] == 0);
    nvl_set_root(heap, NULL);
    CHECK(nvl_get_root(heap, struct small) == NULL);
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    killed(work);
    done(check);
    return 0;
}
