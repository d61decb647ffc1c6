// Functions of the library on NVM do what they do elsewhere, whatever the optimizer makes of them.
// RUN: %levels %s
// RUN: %levels %s -Os
// RUN: %levels %s -flto -fuse-ld=lld
// RUN: %levels %s -D_FORTIFY_SOURCE=2
#include <string.h>
#include "inputs/test.h"

struct pair {
    nvl long *one;
    nvl long *two;
    char name[48];
};

static char volatile_one[64], volatile_two[64];

// Of two places in NVM, and of one place there and one elsewhere: of constant length, as the optimizer likes it best.
#define COMPARE(n)                                                                                  \
    __attribute__((noinline)) static void compare_##n(nvl char *one, nvl char *two) {               \
        for (int i = 0; i <= n; i++) {                                                              \
            memset(one, 'x', n + 1);                                                                \
            memset(two, 'x', n + 1);                                                                \
            memset(volatile_two, 'x', n + 1);                                                       \
            two[i]++;                                                                               \
            volatile_two[i]++;                                                                      \
            CHECK((memcmp(one, two, n) == 0) == (i == n) && (memcmp(one, two, n) < 0) == (i < n));  \
            CHECK((memcmp(one, volatile_two, n) == 0) == (i == n));                                 \
            CHECK((memcmp(volatile_two, one, n) > 0) == (i < n));                                   \
            CHECK((bcmp(two, volatile_two, n) == 0) && !memcmp(two, two, n));                       \
            memcpy(volatile_one, one, n);                                                           \
            CHECK(memcmp(volatile_one, one, n) == 0);                                               \
            /* What has just been stored is compared, and not what was there. */                   \
            one[0] = 'z';                                                                           \
            CHECK(n == 0 || memcmp(one, volatile_one, n) > 0);                                      \
        }                                                                                           \
    }
COMPARE(0)
COMPARE(1)
COMPARE(2)
COMPARE(4)
COMPARE(8)
COMPARE(16)
COMPARE(31)
COMPARE(32)
COMPARE(48)

__attribute__((noinline)) static int compare(nvl char *one, const char *two, size_t length) {
    return memcmp(one, two, length);
}

// A name of the library that the program gives to a function of its own.
__attribute__((noinline)) nvl char *memrchr(nvl char *text, int letter, size_t length) {
    while (length > 0 && text[length - 1] != (char)letter)
        length--;
    return length > 0 ? &text[length - 1] : NULL;
}

// Copies that are fortified, of pointers that count.
static void fortified(nvl_heap_t *heap, nvl struct pair *to, size_t size) {
    struct pair from = {nvl_alloc_nv(heap, 1, long), nvl_alloc_nv(heap, 1, long), "from"};
    *from.one = 7;
    *from.two = 8;
    __builtin___memcpy_chk(&to[0], &from, size, __builtin_object_size(&to[0], 0));
    __builtin___memmove_chk(&to[1], &to[0], size, __builtin_object_size(&to[1], 0));
    __builtin___memcpy_chk(&from, &to[1], size, __builtin_object_size(&from, 0));
    __builtin___memset_chk(&to[2], 0, size, __builtin_object_size(&to[2], 0));
    CHECK(strcmp(from.name, "from") == 0);
}
__attribute__((noinline)) static void too_long(nvl_heap_t *heap) {
    CHECK(freopen("errors", "w", stderr) != NULL);
    nvl char *text = nvl_alloc_nv(heap, 64, char);
    size_t length = text[0] + 32;
    __builtin___memset_chk(text, 1, length, 32);
    CHECK(text[31] == 1);
    __builtin___memset_chk(text, 1, length + 1, 32);
}
static void scrub(void) {
    volatile char stack[8192];
    memset((char *)stack, 0, sizeof stack);
}

static void work(nvl_heap_t *heap) {
    nvl char *text = nvl_alloc_nv(heap, 128, char);
    compare_0(text, text + 64);
    compare_1(text, text + 64);
    compare_2(text, text + 64);
    compare_4(text, text + 64);
    compare_8(text, text + 64);
    compare_16(text, text + 64);
    compare_31(text, text + 64);
    compare_32(text, text + 64);
    compare_48(text, text + 64);
    memcpy(text, "abc", 4);
    CHECK(compare(text, "abc", 4) == 0 && compare(text, "abd", 3) < 0 && compare(text, "abd", 2) == 0);
    CHECK(memrchr(text, 'b', 3) == text + 1 && !memrchr(text, 'c', 1) && memrchr(text, 'a', 1) == text);

    nvl struct pair *pairs = nvl_get_root(heap, struct pair);
    fortified(heap, pairs, sizeof *pairs);
    scrub();
    CHECK(*pairs[0].one == 7 && *pairs[1].two == 8 && !pairs[2].one && !pairs[2].name[0]);
}
// What was copied is durable, and has its counts.
static void check(nvl_heap_t *heap) {
    nvl struct pair *pairs = nvl_get_root(heap, struct pair);
    nvl_collect(heap);
    CHECK(*pairs[0].one == 7 && *pairs[1].two == 8 && !pairs[2].one && pairs[1].name[0] == 'f');
    memset(&pairs[0], 0, sizeof *pairs);
    CHECK(*pairs[1].one == 7);
}

static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl struct pair *pairs = nvl_alloc_nv(heap, 3, struct pair);
    pairs[2].one = nvl_alloc_nv(heap, 1, long);
    pairs[2].name[0] = 'x';
    nvl_set_root(heap, pairs);
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    killed(work);
    killed(check);
    int status = in_process(too_long);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return 0;
}
