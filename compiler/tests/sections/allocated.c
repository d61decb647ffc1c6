// What calls that allocate tell of types: `sizeof` in the size, and the pointer that becomes of the memory. Where the
// two leave something open, nothing is told.
//
// RUN: %front-end -fido -fdurable-malloc -Wall -Wextra -Werror -S -emit-llvm -o - %s | %filecheck
// RUN: %durumcc -fido -fdurable-malloc -S -emit-llvm -o - %s | %filecheck --check-prefix=LOWERED
#include <nv.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct node {
    struct node *next;
    long value;
};
struct base {
    int kind;
};
struct derived {
    struct base base;
    struct node *node;
};
struct tailed {
    size_t count;
    struct node *nodes[];
};
struct headed {
    size_t size;
};
struct either {
    union {
        struct node *node;
        long number;
    };
};
struct page {
    struct page *next;
    _Alignas(16) char bytes[64];
};
struct flag {
    struct flag *next;
    _Alignas(64) char is_set;
};
struct number {
    union {
        double d;
        long l;
    };
};

struct hidden;
struct holder {
    struct hidden *hidden;
    void *any;
    void (*call)(void);
};

void *use(void *);
extern size_t n;

// CHECK-LABEL: define {{.*}}@sizes(
// LOWERED-LABEL: define {{.*}}@sizes(
void sizes(void) {
    // CHECK: @"__durum_ido_typed nv_malloc\0Astruct \22node\22(16,8){0:\22next\22:*0;8:\22value\22:i64;}\0A"(i64 noundef 16)
    // LOWERED: call {{.*}}@__durum_ido_typed_malloc(i64 noundef 16, ptr @__durum_ido_type.[[NODE:[0-9a-f]+]])
    struct node *node = nv_malloc(sizeof *node);
    use(node);
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22node\22(
    // LOWERED: call {{.*}}@__durum_ido_typed_malloc({{.*}}@__durum_ido_type.[[NODE]])
    use(malloc(n * sizeof(struct node)));
    // CHECK: @"__durum_ido_typed calloc\0Astruct \22node\22(
    // LOWERED: call {{.*}}@__durum_ido_typed_calloc({{.*}}@__durum_ido_type.[[NODE]])
    use(calloc(n, sizeof(struct node)));
    // CHECK: @"__durum_ido_typed calloc\0Astruct \22node\22(
    use(calloc(sizeof(struct node), n));
    // CHECK: @"__durum_ido_typed realloc\0Astruct \22node\22(
    // LOWERED: call {{.*}}@__durum_ido_typed_realloc({{.*}}@__durum_ido_type.[[NODE]])
    node = realloc(node, (n + 1) * sizeof *node);
    // CHECK: @"__durum_ido_typed nv_realloc\0Astruct \22node\22(
    // LOWERED: call {{.*}}@__durum_ido_typed_nv_realloc({{.*}}@__durum_ido_type.[[NODE]])
    node = nv_realloc(node, sizeof *node << n);
    // CHECK: @"__durum_ido_typed malloc\0A*1\0Astruct \22node\22({{.*}}:*1;
    struct node **rows = malloc(n * sizeof(void *));
    use(rows);
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22derived\22(
    struct base *base = malloc(sizeof(struct derived));
    use(base);
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22node\22(
    char *bytes = malloc(sizeof(struct node));
    use(bytes);
    // CHECK: @"__durum_ido_typed malloc\0Ai8\0A"
    bytes = malloc(n * sizeof(char));
    use(bytes);
    // CHECK: @"__durum_ido_typed malloc\0Ai8\0A"
    bytes = malloc(n + sizeof(char));
    use(bytes);
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22flag\22(
    struct flag *flag = malloc(sizeof *flag);
    use(flag);
    // CHECK: @"__durum_ido_typed nv_root\0Astruct \22node\22(
    use(nv_root(sizeof(struct node)));
}

// CHECK-LABEL: define {{.*}}@pointers(
void pointers(void) {
    // CHECK: @"__durum_ido_typed malloc\0Ai32\0A"
    int *numbers = malloc(4 * n);
    use(numbers);
    // CHECK: @"__durum_ido_typed malloc\0A*1\0Astruct \22node\22({{.*}}:*1;
    struct node **rows = n ? malloc(8 * n) : NULL;
    use(rows);
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22node\22(
    use((struct node *)malloc(64));
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22holder\22(24,8){0:\22hidden\22:*any;8:\22any\22:*any;16:\22call\22:*any;}\0A"
    struct holder *holder = malloc(sizeof *holder);
    use(holder);
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22number\22(8,8){0:\22d|l\22:opaque(8,8);}\0A"
    struct number *number = malloc(sizeof *number);
    use(number);
}

// CHECK-LABEL: define {{.*}}@tails(
void tails(void) {
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22tailed\22(8,8){0:\22count\22:u64;8:\22nodes\22:[*1;tail];}\0A
    struct tailed *tailed = malloc(sizeof *tailed + n * sizeof(struct node *));
    use(tailed);
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22tailed\22(
    tailed = malloc(sizeof *tailed + 8 * n);
    use(tailed);
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22tailed\22(
    tailed = malloc(offsetof(struct tailed, nodes) + n * sizeof *tailed->nodes);
    use(tailed);
    // CHECK: @"__durum_ido_typed calloc\0Astruct \22tailed\22(
    tailed = calloc(1, sizeof *tailed + 8 * n);
    use(tailed);
    // CHECK: @"__durum_ido_untyped malloc\0Aa row of 'struct tailed', which has no end"
    use(malloc(n * sizeof(struct tailed)));
    // CHECK: @"__durum_ido_untyped malloc\0Anothing says what lies behind the 'struct headed' in it"
    struct headed *headed = malloc(sizeof *headed + n);
    use(headed);
    // CHECK: @"__durum_ido_untyped malloc\0Aits size is that of 'struct headed' and of 'struct node *'"
    headed = malloc(sizeof *headed + n * sizeof(struct node *));
    use(headed);
}

// CHECK-LABEL: define {{.*}}@unknown(
// LOWERED-LABEL: define {{.*}}@unknown(
void unknown(void) {
    // CHECK: @"__durum_ido_untyped malloc\0Aneither a sizeof nor a pointer that it becomes says what it holds"
    // LOWERED: call {{.*}}@__durum_ido_typed_malloc(i64 noundef %{{.*}}, ptr null)
    use(malloc(n));
    // CHECK: @"__durum_ido_untyped malloc\0Abytes may hold anything: 'sizeof(char)' in the size says that these hold text"
    char *bytes = malloc(n);
    use(bytes);
    // CHECK: @"__durum_ido_untyped malloc\0Aits size is no sizeof of 'struct node'"
    struct node *node = malloc(n);
    use(node);
    // CHECK: @"__durum_ido_untyped malloc\0Aits size is that of 'struct base', and it becomes a pointer to 'struct node'"
    node = malloc(n * sizeof(struct base));
    use(node);
    // CHECK: @"__durum_ido_untyped malloc\0A'union either{{.*}}' is a union with a pointer"
    struct either *either = malloc(sizeof *either);
    use(either);
    // CHECK: @"__durum_ido_untyped malloc\0A'struct page' has aligned bytes, in which an object may lie"
    struct page *page = malloc(sizeof *page);
    use(page);
}
