// A call that must be a function's end stays what it is outside of sections, and the program ends where the function is
// called in one.
// RUN: %simulated/bin/durumcc -fido -O1 -S -emit-llvm %s -o - | %filecheck
// RUN: %simulated/bin/durumcc -fido -O0 -c %s -o %t.o
#include <pthread.h>

long last(long *number);

// CHECK-LABEL: define{{.*}} i64 @first(
// CHECK: call void @__durum_ido_refused(
// CHECK: musttail call i64 @last(
// CHECK-NEXT: ret i64
__attribute__((noinline)) long first(long *number) {
    ++*number;
    __attribute__((musttail)) return last(number);
}

// CHECK-LABEL: define{{.*}} void @section(
// CHECK: call i64 @first(
void section(pthread_mutex_t *lock, long *number) {
    pthread_mutex_lock(lock);
    first(number);
    pthread_mutex_unlock(lock);
}
