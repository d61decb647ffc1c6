// What breaks a rule when the program runs ends it with file and line, also without -g.
// RUN: %levels %s
// RUN: %levels %s -g
// RUN: %levels %s -fnvl-no-checks -DUNCHECKED
#include <string.h>
#include "inputs/test.h"

struct list {
    nvl struct list *next;
    nvl int *data;
};

__attribute__((noinline)) static int less(nvl int *p, nvl int *q) {
    return p < q;
}
__attribute__((noinline)) static int sum(nvl int *from, nvl int *to) {
    int all = 0;
    for (nvl int *p = from; p < to; p++)
        all += *p;
    return all;
}
__attribute__((noinline)) static long distance(nvl int *p, nvl int *q) {
    return q - p;
}

__attribute__((noinline)) static void set_next(nvl struct list *p, nvl struct list *to) {
    p->next = to;
}
static int number;
static void case_of(nvl_heap_t *heap) {
    CHECK(freopen("errors", "w", stderr) != NULL);
    nvl_heap_t *other = nvl_create("other"), *second;
    nvl struct list *p = nvl_get_root(heap, struct list), *q;
    nvl int *one = nvl_alloc_nv(heap, 10, int), *two = nvl_alloc_nv(heap, 10, int);
    p->data = one;
    p->data = two;
    CHECK(less(one, one + 10) && !less(one, one) && !less(one, NULL) && sum(one, one + 10) == 0);
    CHECK(distance(one, one + 4) == 4 && distance(two + 10, two) == -10);
    CHECK(one != two && !(one == two));
    switch (number) {
    case 0:
        p->next = nvl_alloc_nv(other, 1, struct list);
        break;
    case 1:
        nvl_get_root(heap, int);
        break;
    case 2:
#ifndef UNCHECKED
        less(one, two);
        break;
    case 3:
        sum(one, two);
        break;
    case 4:
        distance(one, two);
        break;
    case 5:
#endif
#pragma nvl atomic heap(heap, other)
        one[0] = 1;
        break;
    case 6:
        nvl_close(other);
        nvl_close(other);
        break;
    case 7:
        nvl_close(other);
        nvl_alloc_nv(other, 1, int);
        break;
    case 8:
#pragma nvl atomic heap(heap)
        nvl_close(heap);
        break;
    case 9:
        nvl_collect((nvl_heap_t *)&number);
        break;
    case 10:
        second = nvl_create("heap/second");
        q = nvl_alloc_nv(second, 1, struct list);
#pragma nvl atomic heap(heap)
        {
#pragma nvl atomic heap(second)
            {
                set_next(q, q);
                set_next(p, NULL);
            }
            set_next(p, p);
            set_next(q, NULL);
        }
        break;
    }
}

static void expect(const char *line, const char *text) {
    int status = in_process(case_of);
    CHECK(WIFSIGNALED(status));
    char errors[2000] = "";
    FILE *file = fopen("errors", "r");
    errors[fread(errors, 1, sizeof errors - 1, file)] = 0;
    fclose(file);
    if (!text) {
        CHECK(WTERMSIG(status) == SIGKILL && errors[0] == 0);
    } else if (WTERMSIG(status) != SIGABRT || !strstr(errors, line) || !strstr(errors, text)) {
        fprintf(stderr, "case %d: expected %s and %s, got signal %d and: %s\n", number, line, text,
                WTERMSIG(status), errors);
        _exit(1);
    }
    CHECK(system("rm -rf other") == 0);
    number++;
}

static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl_set_root(heap, nvl_alloc_nv(heap, 1, struct list));
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    expect("messages.c:42: nvl:", "pointers from heap to heap are not allowed");
    expect("messages.c:45: nvl:", "root");
#ifndef UNCHECKED
    expect("messages.c:14: nvl:", "pointers to different allocations are compared");
    expect("messages.c:18: nvl:", "pointers to different allocations are compared");
    expect("messages.c:23: nvl:", "pointers to different allocations are compared");
#endif
    expect("messages.c:59: nvl:", "one transaction over the heaps");
    number = 6;
    expect("messages.c:64: nvl:", "the heap \"other\" was closed at ");
    expect("messages.c:68: nvl:", "messages.c:67 before");
    expect("messages.c:72: nvl:", "closed inside of a transaction");
    expect("messages.c:75: nvl:", "is no heap");
    expect("messages.c:27: nvl:", "a store to the heap \"heap/second\", and heap(...) of this");
    number = 99;
    expect("", NULL);
    return 0;
}
