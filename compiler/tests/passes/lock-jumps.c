// What setjmp comes back with for the second time is not known.
// RUN: %clang -O0 -g -Xclang -disable-O0-optnone -S -emit-llvm %s -o - | opt -passes=mem2reg -S | %print-locks > %t
// RUN: %filecheck < %t
// RUN: %clang -O1 -g -fno-inline -S -emit-llvm %s -o - | %print-locks > %t
// RUN: %filecheck --check-prefixes=CHECK,ASKED < %t
#include <pthread.h>
#include <setjmp.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static jmp_buf place;
extern int value;

// CHECK-LABEL: {{^}}twice: 0..many, returns -many..many, lowest -many{{$}}
// CHECK: 0: pthread_mutex_lock @a
// CHECK: -many..many: pthread_mutex_unlock @a
void twice(void) {
    if (setjmp(place) == 0) {
        pthread_mutex_lock(&a);
        longjmp(place, 1);
    }
    pthread_mutex_unlock(&a);
}

// CHECK-LABEL: {{^}}unasked: 0..many, returns -many..many{{$}}
void unasked(void) {
    setjmp(place);
    value++;
}

// What a thread does that is cancelled. Without optimization the answer takes a longer way.
// CHECK-LABEL: {{^}}cancelled: 0..many,
// ASKED-SAME: returns 0, lowest -many{{$}}
// CHECK: 0: pthread_mutex_lock @a
// ASKED: -many..many: pthread_mutex_unlock @a
// ASKED: 1: pthread_mutex_unlock @a
void cancelled(void) {
    pthread_mutex_lock(&a);
    pthread_cleanup_push((void (*)(void *))pthread_mutex_unlock, &a);
    while (!value)
        pthread_testcancel();
    pthread_cleanup_pop(1);
}
