// longjmp out of a transaction takes back what it has written, and setjmp comes back to a program that is outside of
// it.
// RUN: %levels %s
#include <setjmp.h>
#include <ucontext.h>
#include "inputs/test.h"

static jmp_buf buffer;

__attribute__((noinline)) static void leave(void) { longjmp(buffer, 1); }
__attribute__((noinline)) static void change(nvl_heap_t *heap, nvl long *p, int leaves) {
#pragma nvl atomic heap(heap)
    {
        p[0] = 100;
        if (leaves)
            leave();
        p[1] = 101;
    }
}

static void work(nvl_heap_t *heap) {
    nvl long *p = nvl_get_root(heap, long);
    if (setjmp(buffer) == 0) {
        change(heap, p, 1);
        CHECK(0);
    }
    CHECK(p[0] == 1);
    p[2] = 3;
    change(heap, p, 0);
    CHECK(p[0] == 100 && p[1] == 101);
}

// A level inside another one is left: the outer one cannot commit.
static void doomed(nvl_heap_t *heap) {
    nvl long *p = nvl_get_root(heap, long);
#pragma nvl atomic heap(heap)
    {
        p[3] = 4;
        if (setjmp(buffer) == 0)
            change(heap, p, 1);
    }
}

// The other functions that come back to a place.
static void *place[5];
static ucontext_t context;
static volatile int times;
static void leave_builtin(void) { __builtin_longjmp(place, 1); }
static void leave_context(void) { setcontext(&context); }
__attribute__((noinline)) static void left(nvl_heap_t *heap, nvl long *p, void (*leave)(void)) {
#pragma nvl atomic heap(heap)
    {
        p[3] = 50;
        leave();
        p[3] = 60;
    }
}
static void other_ways(nvl_heap_t *heap) {
    nvl long *p = nvl_get_root(heap, long);
    if (__builtin_setjmp(place) == 0) {
        left(heap, p, leave_builtin);
        CHECK(0);
    }
    CHECK(p[3] == 0);
    getcontext(&context);
    if (times++ == 0) {
        left(heap, p, leave_context);
        CHECK(0);
    }
    CHECK(p[3] == 0);
    p[3] = 5;
}
static void other_check(void) {
    nvl_heap_t *heap = nvl_open("heap");
    CHECK(nvl_get_root(heap, long)[3] == 5);
    nvl_close(heap);
}

static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl long *p = nvl_alloc_nv(heap, 4, long);
    p[0] = 1;
    nvl_set_root(heap, p);
    nvl_close(heap);
}
static void check(void) {
    nvl_heap_t *heap = nvl_open("heap");
    nvl long *p = nvl_get_root(heap, long);
    CHECK(p[0] == 100 && p[1] == 101 && p[2] == 3 && p[3] == 0);
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    killed(work);
    done(check);
    int status = in_process(doomed);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    done(check);
    killed(other_ways);
    done(other_check);
    return 0;
}
