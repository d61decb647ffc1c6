// What `new` makes is known, and what templates allocate by what they are made of.
//
// RUN: %front-end -fido -fdurable-malloc -Wall -Wextra -Werror -O1 -S -emit-llvm -o - %s | %filecheck
// RUN: %durumcc -fido -fdurable-malloc -S -emit-llvm -o - %s | %filecheck --check-prefix=LOWERED
// RUN: %durumcc -fido -fdurable-malloc -std=c++20 -O2 -g -Wall -Wextra -Werror -c -o %t.o %s
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

struct node {
    node *next;
    long value;
};
struct guarded {
    node *first;
    ~guarded();
};
struct derived : node {
    node *more;
};
struct place {
    alignas(node) unsigned char bytes[sizeof(node)];
};
struct dynamic {
    virtual void call();
    node *first;
};

void use(void *);

template <class T> T *make(std::size_t count) {
    return static_cast<T *>(std::malloc(count * sizeof(T)));
}

#if __cplusplus >= 202002
// What runs when it is compiled.
constexpr int sum() {
    node *one = new node{nullptr, 1};
    const int value = one->value;
    delete one;
    return value;
}
static_assert(sum() == 1);
#endif

// CHECK-LABEL: define {{.*}}@_Z7objectsm(
// LOWERED-LABEL: define {{.*}}@_Z7objectsm(
void objects(std::size_t n) {
    // CHECK: @"__durum_ido_typed _Znwm\0Astruct \22node\22(16,8){0:\22next\22:*0;8:\22value\22:i64;}\0A"(i64 noundef 16)
    // LOWERED: @__durum_ido_typed_new(i64 noundef 16, ptr @__durum_ido_type.[[NODE:[0-9a-f]+]])
    use(new node);
    // CHECK: @"__durum_ido_typed _Znam\0Astruct \22node\22(
    // LOWERED: @__durum_ido_typed_new({{.*}}@__durum_ido_type.[[NODE]])
    use(new node[n]);
    // CHECK: @"__durum_ido_typed _ZnwmRKSt9nothrow_t\0Astruct \22node\22(
    // LOWERED: @__durum_ido_typed_new_nothrow({{.*}}@__durum_ido_type.[[NODE]])
    use(new (std::nothrow) node);
    // CHECK: @"__durum_ido_typed _Znwm\0Astruct \22guarded\22(
    use(new guarded);
    // CHECK: @"__durum_ido_untyped _Znam\0Athe length of an array whose elements have destructors lies in it"
    use(new guarded[n]);
    // CHECK: @"__durum_ido_untyped _Znwm\0A'derived' has a base class"
    use(new derived);
    // CHECK: @"__durum_ido_untyped _Znwm\0A'dynamic' has virtual functions"
    use(new dynamic);
    // CHECK: @"__durum_ido_untyped _Znwm\0A'place' has aligned bytes, in which an object may lie"
    use(new place);
    // CHECK: @"__durum_ido_untyped _Znwm\0A{{.*}} has aligned bytes, in which an object may lie"
    use(new std::aligned_storage<sizeof(node), alignof(node)>::type);
    // CHECK: @"__durum_ido_typed _Znam\0Ai8\0A"
    use(new char[n]);
    // CHECK: @"__durum_ido_untyped _Znam\0Abytes may hold anything"
    use(new std::byte[n]);
    // CHECK: @"__durum_ido_typed _Znwm\0Astruct \22node\22(
    use(static_cast<node *>(::operator new(n * sizeof(node))));
    // CHECK: @"__durum_ido_typed _Znwm\0Astruct \22node\22(
    use(std::allocator<node>().allocate(n));
    // CHECK: @"__durum_ido_typed malloc\0Astruct \22node\22(
    // LOWERED: @_Z4makeI4node
    use(make<node>(n));
    // CHECK: @"__durum_ido_typed malloc\0Ai32\0A"
    use(make<int>(n));
}
