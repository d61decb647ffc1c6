// Ordinary C that comes close to what NVL-C looks at: names, attributes, pragmas, jumps, void pointers.
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define nvl(x) ((x) + 1)
int nvl_wp = 3;
typedef struct nvl_heap_t {
    int n;
} nvl_heap_t;

struct node {
    struct node *next;
    void *data;
    union {
        struct node *pointer;
        long number;
    } u;
    _Atomic(struct node *) atomic;
    int (*compare)(const void *, const void *);
    char tail[];
};

static int sum(int n, ...) {
    va_list list;
    va_start(list, n);
    int total = 0;
    while (n--)
        total += va_arg(list, int);
    va_end(list);
    return total;
}

static int jumps(int c) {
    void *where[] = {&&one, &&two};
    if (c > 4)
        goto two;
    goto *where[c & 1];
one:;
    struct node *p = NULL;
    c += p != NULL;
two:
    return c;
}

__attribute__((noinline)) static long convert(long n) {
    struct node *p = (struct node *)n;
    int *q = (int *)(void *)p;
    return (long)q == n;
}

int main(void) {
    nvl_heap_t heap = {nvl(1)};
    struct node *p = malloc(sizeof *p + 4);
    jmp_buf buffer;
    p->u.pointer = p;
    atomic_store(&p->atomic, p);
    memset(p->tail, 0, 4);
    if (setjmp(buffer) == 0)
        longjmp(buffer, 1);
    __asm__("" : "+m"(p->u.number));
    printf("%d %d %ld %d\n", sum(3, 1, 2, 3), jumps(heap.n), convert(16), nvl_wp);
    free(p);
    return 0;
}
