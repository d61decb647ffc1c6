// The linked list of the paper, Figure 2, as it is printed there.
// RUN: %durumcc -fsyntax-only -Wall -Wextra -Werror %s
// RUN: %ir -O0 | %filecheck
// RUN: %ir -O1 | %filecheck
// RUN: %ir -O2 | %filecheck
// RUN: %ir -O3 | %filecheck
#include <nvl.h>
struct list {
    int value;
    nvl struct list *next;
};
void add(int k) {
    nvl_heap_t *heap = nvl_open("foo.nvl");
    nvl struct list *a
    = nvl_get_root(heap, struct list);
   nvl struct list *b
   = nvl_alloc_nv(heap, 1, struct list);
   b->value = k;
   b->next = a->next;
   a->next = b;
   nvl_close(heap);
}
void remove(int k) {
    nvl_heap_t *heap = nvl_open("foo.nvl");
    nvl struct list *a
    = nvl_get_root(heap, struct list);
    #pragma nvl atomic heap(heap)
    while (a->next != NULL) {
        if (a->next->value == k)
            a->next = a->next->next;
        else
            a = a->next;
    }
    nvl_close(heap);
}
// The root and the new object have the same type, so the same descriptor.
// CHECK: [[TYPE:@[.a-z0-9]+]] = {{.*}} c"nvl1 16 8 f01a61bd615a023d\0Astruct \22list\22(16,8){0:\22value\22:i32;8:\22next\22:*0;}\0A\00"
// CHECK: define {{.*}}void @add(
// CHECK: call ptr addrspace(1) @__nvl_get_root(ptr {{.*}}, ptr noundef {{(nonnull )?}}[[TYPE]])
// CHECK: call ptr addrspace(1) @__nvl_alloc(ptr {{.*}}, i64 noundef 1, i64 noundef 16, ptr noundef {{(nonnull )?}}[[TYPE]])
// CHECK: store i32 {{.*}}, ptr addrspace(1)
// CHECK: store ptr addrspace(1) {{.*}}, ptr addrspace(1)
// CHECK: define {{.*}}void @remove(
// CHECK: call void @__nvl_tx_begin(ptr noundef {{.*}}, i32 noundef 1, i32 noundef 1, ptr noundef
// CHECK: store ptr addrspace(1) {{.*}}, ptr addrspace(1)
// CHECK: call void @__nvl_tx_end(
// CHECK: call void @nvl_close(
