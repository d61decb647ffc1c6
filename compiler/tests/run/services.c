// Heaps of a service's store: several of one program's, and each one program's.
// RUN: %served %s
#include <errno.h>
#include <string.h>
#include "inputs/test.h"

static void is_refused(nvl_heap_t *heap, int expected, const char *text) {
    int found = errno;
    if (heap || found != expected || !strstr(nvl_error(), text)) {
        fprintf(stderr, "expected errno %d and \"%s\": %d \"%s\"\n", expected, text, found, nvl_error());
        _exit(1);
    }
}

struct pair {
    nvl struct pair *next;
    long value;
};

static nvl struct pair *made(nvl_heap_t *heap, long value) {
    CHECK(heap != NULL);
    nvl struct pair *p = nvl_alloc_nv(heap, 1, struct pair);
    nvl_set_root(heap, p);
    p->value = value;
    return p;
}

static void add_to_both(nvl_heap_t *one, nvl_heap_t *other, long value) {
    nvl struct pair *p = nvl_get_root(one, struct pair), *q = nvl_get_root(other, struct pair);
#pragma nvl atomic heap(one, other) backup(p[0:1], q[0:1])
    {
        p->value += value;
        q->value += value;
    }
}

static void two_heaps(void) {
    is_refused(nvl_open(heap_named("one")), ENOENT, "no pool \"one\"; make the heap with nvl_create(\"durum+unix:");
    nvl_heap_t *one = nvl_create(heap_named("one")), *other = nvl_create(heap_named("other"), 3 << 20, 0600);
    made(one, 1);
    made(other, 2);
    is_refused(nvl_create(heap_named("one")), EEXIST, "exists already");
    is_refused(nvl_open(heap_named("one")), EBUSY, "open already in this process");
    // They are of one store, so one transaction may change both.
    add_to_both(one, other, 10);
    nvl_close(one);
    CHECK(nvl_get_root(other, struct pair)->value == 12);
    one = nvl_open(heap_named("one"));
    add_to_both(one, other, 10);
    nvl_close(other);
    CHECK(nvl_get_root(one, struct pair)->value == 21);
    nvl_close(one);
}

static void busy(void) {
    is_refused(nvl_open(heap_named("one")), EBUSY, "used by another program");
    CHECK(durum_errorcode() == DURUM_E_POOL_BUSY);
    nvl_heap_t *other = nvl_open(heap_named("other"));
    CHECK(other && nvl_get_root(other, struct pair)->value == 22);
    nvl_close(other);
}

/* A heap is one program's. */
static void held_by_another(void) {
    int told[2], answer[2];
    char byte = 0;
    CHECK(pipe(told) == 0 && pipe(answer) == 0);
    pid_t holder = fork();
    if (holder == 0) {
        CHECK(nvl_open(heap_named("one")) != NULL);
        CHECK(write(told[1], "!", 1) == 1 && read(answer[0], &byte, 1) == 1);
        _exit(0);
    }
    CHECK(read(told[0], &byte, 1) == 1);
    done(busy);
    CHECK(write(answer[1], "!", 1) == 1);
    int status;
    CHECK(waitpid(holder, &status, 0) == holder && status == 0);
}

static void nobody_there(void) {
    is_refused(nvl_open("durum+unix:nothing:one"), ECONNREFUSED, "durumd --store");
    CHECK(durum_errorcode() == DURUM_E_SERVICE_GONE);
    is_refused(nvl_create("durum+unix:nothing:one"), ECONNREFUSED, "durumd --store");
}

int main(void) {
    done(two_heaps);
    held_by_another();
    done(nobody_there);
    return 0;
}
