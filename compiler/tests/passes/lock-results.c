// What the result of a call tells of its lock, and what it does not.
// RUN: %clang -O0 -g -Xclang -disable-O0-optnone -S -emit-llvm %s -o - | opt -passes=mem2reg -S | %print-locks > %t
// RUN: %filecheck --check-prefixes=CHECK,SIMPLE < %t
// RUN: %clang -O1 -g -fno-inline -S -emit-llvm %s -o - | %print-locks | %filecheck
#include <pthread.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
extern int value;

// No error is below 0: who asks for one relies on it that there is none.
// CHECK-LABEL: {{^}}negative: 0..many, returns 0{{$}}
// CHECK: 1: pthread_mutex_unlock @a
int negative(void) {
    if (pthread_mutex_lock(&a) < 0)
        return -1;
    value++;
    pthread_mutex_unlock(&a);
    return 0;
}

// CHECK-LABEL: {{^}}positive: 0..many, returns 0{{$}}
// CHECK: 1: pthread_mutex_unlock @a
int positive(void) {
    if (0 < pthread_mutex_lock(&a))
        return -1;
    value++;
    pthread_mutex_unlock(&a);
    return 0;
}

// The caller looks at it, where nobody sees that.
// CHECK-LABEL: {{^}}returned: 0..many, returns 0..1{{$}}
int returned(void) { return pthread_mutex_lock(&a); }

// Nor what memory has kept, until an optimizer makes it known.
// CHECK-LABEL: {{^}}stored: 0..many,
// SIMPLE-SAME: returns -1..1, lowest -1{{$}}
// SIMPLE: 0..1: pthread_mutex_unlock @a
void stored(int *result) {
    *result = pthread_mutex_lock(&a);
    if (*result == 0)
        pthread_mutex_unlock(&a);
}

// Something is done before anybody asks, and who asks for one error does not ask for others.
// CHECK-LABEL: {{^}}late: 0..many, returns -1..0, lowest -1{{$}}
// CHECK: 0..1: pthread_mutex_unlock @a
void late(void) {
    int result = pthread_mutex_lock(&a);
    value++;
    if (result == 35)
        return;
    pthread_mutex_unlock(&a);
}

// Success and an error go the same way, by name.
// CHECK-LABEL: {{^}}both: 0..many, returns -1..0, lowest -1{{$}}
// CHECK: 0..1: pthread_mutex_unlock @a
void both(void) {
    switch (pthread_mutex_lock(&a)) {
    case 0:
    case 35:
        value++;
        pthread_mutex_unlock(&a);
    }
}
