// Locks that are taken and released through pointers to functions.
// RUN: %clang -O0 -g -Xclang -disable-O0-optnone -S -emit-llvm %s -o - | opt -passes=mem2reg -S | %print-locks > %t
// RUN: %filecheck < %t
// RUN: %clang -O1 -g -fno-inline -S -emit-llvm %s -o - | %print-locks | %filecheck
#include <pthread.h>

extern int value;

struct methods {
    void (*enter)(pthread_mutex_t *);
    int (*leave)(pthread_mutex_t *);
    void (*other)(int, int);
};
struct methods methods;

// A function that has as many arguments, and whose address is known, or one of another file.
// CHECK-LABEL: {{^}}section: 0..many, returns -2..2, lowest -2{{$}}
void section(pthread_mutex_t *lock) {
    methods.enter(lock);
    value++;
    methods.leave(lock);
}

// CHECK-LABEL: {{^}}apart: 0..many, returns 0{{$}}
void apart(void) { methods.other(1, 2); }

// CHECK-LABEL: {{^}}enter: 0..many, returns 1{{$}}
static void enter(pthread_mutex_t *lock) { pthread_mutex_lock(lock); }
static void other(int one, int two) { value = one + two; }

void install(void) {
    methods.enter = enter;
    methods.leave = pthread_mutex_unlock;
    methods.other = other;
}
