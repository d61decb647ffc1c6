// The descriptors that the macros pass (docs/reference/nvl-ir.md, docs/format/types.md).
// RUN: %ir | %filecheck
#include <nvl.h>
#define USE(...) (void)nvl_get_root(heap, __VA_ARGS__)

struct a;
struct b {
    nvl struct a *a;
};
struct a {
    nvl struct b *first, *second;
    nvl struct a *nvl_wp back;
};
struct rows {
    nvl int *strong[2][3];
    struct {
        char c;
        nvl struct rows *nvl_wp weak[4];
    } inner[5];
};
enum color { red, green = 5, blue = -1 };
typedef struct {
    unsigned a : 3;
    int b : 5;
    unsigned : 0;
    _Bool c : 1;
    enum color color;
    enum { one, two } nameless;
    union {
        int i;
        float f;
    };
    union number {
        long l;
        double d;
    } number;
    struct {
        short x, y;
    };
    long double precise;
    float _Complex complex;
    _Bool flag;
    char text[];
} everything;
struct u8 {
    unsigned char a;
    signed char b;
    unsigned short c;
    unsigned long long d;
};
struct __attribute__((packed)) tight {
    char c;
    int i;
    struct u8 inner;
};

void f(nvl_heap_t *heap, nvl float (*matrix)[4]) {
    // CHECK: c"nvl1 24 8 {{[0-9a-f]+}}\0Astruct \22a\22(24,8){0:\22first\22:*1;8:\22second\22:*1;16:\22back\22:~0;}\0Astruct \22b\22(8,8){0:\22a\22:*0;}\0A\00"
    USE(struct a);
    // CHECK: c"nvl1 248 8 {{[0-9a-f]+}}\0Astruct \22rows\22(248,8){0:\22strong\22:{{\[\[}}*1;3];2];48:\22inner\22:[struct \22rows.inner\22(40,8){0:\22c\22:i8;8:\22weak\22:[~0;4];};5];}\0Ai32\0A\00"
    USE(struct rows);
    // CHECK: struct \22everything\22(80,16){0:\22a:u3 b:i5 c:u1\22:opaque(5,1);8:\22color\22:i32;12:\22nameless\22:u32;16:\22i|f\22:opaque(4,4);24:\22number\22:opaque(8,8);32:\22x\22:i16;34:\22y\22:i16;48:\22precise\22:opaque(16,16);64:\22complex\22:[f32;2];72:\22flag\22:bool;73:\22text\22:[i8;tail];}
    USE(everything);
    // CHECK: struct \22struct u8\22(16,8){0:\22a\22:u8;1:\22b\22:i8;2:\22c\22:u16;8:\22d\22:u64;}
    USE(struct u8);
    // CHECK: struct \22tight\22(21,1){0:\22c\22:i8;1:\22i\22:opaque(4,1);5:\22inner\22:opaque(16,1);}
    USE(struct tight);
    // CHECK: c"nvl1 8 8 {{[0-9a-f]+}}\0A*1\0Astruct \22a\22
    USE(nvl struct a *);
    // CHECK: c"nvl1 4 4 {{[0-9a-f]+}}\0Af32\0A\00"
    USE(float);
    // CHECK: c"nvl1 16 4 {{[0-9a-f]+}}\0A[f32;4]\0A\00"
    nvl_set_root(heap, matrix);
    // CHECK: struct \22anonymous\22(8,8){0:\22p\22:*1;}\0Astruct \22anonymous.p\22(4,4){0:\22x\22:i32;}
    USE(struct { nvl struct { int x; } *p; });
    // In each place where an expression may stand, the descriptor is there and the call that names the type is not.
    // CHECK-NOT: @__nvl_type_of
    struct b in_list[2] = {[1] = {.a = nvl_alloc_nv(heap, 1, struct a)}};
    in_list[0] = (struct b){nvl_get_root(heap, struct a)};
    for (nvl struct a *p = nvl_get_root(heap, struct a); p; p = nvl_alloc_nv(heap, sizeof(*nvl_alloc_nv(heap, 1, int)), struct a))
        p->back = p ? nvl_alloc_nv(heap, 1, struct a) : ({ nvl_get_root(heap, struct a); });
}
