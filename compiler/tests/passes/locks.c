// What is known of the locks that a thread holds, at each level: without optimization when local variables are in
// registers.
// RUN: %clang -O0 -g -Xclang -disable-O0-optnone -S -emit-llvm %s -o - | opt -passes=mem2reg -S | %print-locks > %t
// RUN: %filecheck --check-prefixes=CHECK,SIMPLE < %t
// RUN: %clang -O1 -g -fno-inline -S -emit-llvm %s -o - | %print-locks | %filecheck
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

void durum_durable_begin(void);
void durum_durable_end(void);

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
extern int value, other;

// CHECK-LABEL: {{^}}nested: 0..many, returns 0{{$}}
// CHECK-NEXT: locks.c:[[@LINE+5]]: 0: pthread_mutex_lock @a
// CHECK-NEXT: 1: pthread_mutex_lock @b
// CHECK-NEXT: 2: pthread_mutex_unlock @b
// CHECK-NEXT: 1: pthread_mutex_unlock @a
void nested(void) {
    pthread_mutex_lock(&a);
    value = 1;
    pthread_mutex_lock(&b);
    value = 2;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
}

// CHECK-LABEL: {{^}}crossing: 0..many, returns 0{{$}}
// CHECK-NEXT: 0: pthread_rwlock_rdlock @rw
// CHECK-NEXT: 1: pthread_spin_lock @spin
// CHECK-NEXT: 2: pthread_rwlock_unlock @rw
// CHECK-NEXT: 1: pthread_spin_unlock @spin
void crossing(void) {
    pthread_rwlock_rdlock(&rw);
    pthread_spin_lock(&spin);
    pthread_rwlock_unlock(&rw);
    pthread_spin_unlock(&spin);
}

// A lock that is taken on one way only, by the same condition twice: the optimizer makes two ways of it. Without it the
// lock that is let go may be the caller's, as far as anybody sees.
// CHECK-LABEL: {{^}}conditional:
// SIMPLE-SAME: 0..many, returns -1..1, lowest -1{{$}}
// CHECK: 0: pthread_mutex_lock @a
// SIMPLE: 0..1: pthread_mutex_unlock @a
void conditional(int c) {
    if (c)
        pthread_mutex_lock(&a);
    value = c;
    if (c)
        pthread_mutex_unlock(&a);
}

// The result says whether the lock was taken.
// CHECK-LABEL: {{^}}attempt: 0..many, returns 0{{$}}
// CHECK: 0: pthread_mutex_trylock @a
// CHECK: 1: pthread_mutex_lock @b
// CHECK: 2: pthread_mutex_unlock @b
// CHECK: 1: pthread_mutex_unlock @a
int attempt(void) {
    if (pthread_mutex_trylock(&a) != 0)
        return 0;
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return 1;
}

// And of an error-checking mutex, by number.
// CHECK-LABEL: {{^}}numbers: 0..many, returns 0{{$}}
// CHECK: 0: pthread_mutex_timedlock @a
// CHECK: 1: pthread_mutex_unlock @a
int numbers(const struct timespec *until) {
    switch (pthread_mutex_timedlock(&a, until)) {
    case 0:
        value++;
        pthread_mutex_unlock(&a);
        return 1;
    case 110:
        return 2;
    default:
        return 3;
    }
}

// Who asks for one error relies on it that there is no other one; each answer counts once.
// CHECK-LABEL: {{^}}again: 0..many, returns 0{{$}}
// CHECK: 0: pthread_rwlock_wrlock @rw
// CHECK: 1: pthread_rwlock_unlock @rw
int again(void) {
    int result;
    do
        result = pthread_rwlock_wrlock(&rw);
    while (result == 11);
    if (result == 35)
        return 0;
    value = 3;
    pthread_rwlock_unlock(&rw);
    return 1;
}
// CHECK-LABEL: {{^}}errors: 0..many, returns 0{{$}}
// CHECK: 0: pthread_mutex_lock @a
// CHECK: 1: pthread_mutex_lock @b
// CHECK-DAG: 1: pthread_mutex_unlock @a
// CHECK-DAG: 2: pthread_mutex_unlock @b
int errors(void) {
    pthread_mutex_lock(&a);
    int result = pthread_mutex_lock(&b);
    if (result != 0) {
        if (result == 35)
            value = result;
        pthread_mutex_unlock(&a);
        return result;
    }
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return 0;
}

// Behind another call, nobody knows which lock the answer is about.
// CHECK-LABEL: {{^}}late: 0..many, returns -1..1, lowest -1{{$}}
// CHECK: 0: pthread_spin_trylock @spin
// CHECK: 0..1: pthread_mutex_lock @a
// CHECK: 0..1: pthread_spin_unlock @spin
int late(void) {
    int result = pthread_spin_trylock(&spin);
    pthread_mutex_lock(&a);
    value++;
    pthread_mutex_unlock(&a);
    if (result)
        return 0;
    pthread_spin_unlock(&spin);
    return 1;
}

// A section that begins in one function and ends in another.
// CHECK-LABEL: {{^}}main: 0, returns -1, lowest -1{{$}}
// CHECK-NEXT: 0: enter
// CHECK-NEXT: 1: leave
// CHECK-NEXT: 0: unheld
// CHECK-LABEL: {{^}}enter: 0, returns 1{{$}}
// CHECK-LABEL: {{^}}inside: 1, returns 0{{$}}
// CHECK-LABEL: {{^}}leave: 1, returns -1, lowest -1{{$}}
// CHECK-LABEL: {{^}}unheld: 0, returns -1, lowest -1{{$}}
// CHECK: problem: no lock is held that could be let go
static void enter(void) { pthread_mutex_lock(&a); }
static void leave(void) { pthread_mutex_unlock(&a); }
static void inside(void) { value = 4; }
static void unheld(void) { pthread_mutex_unlock(&b); }
int main(void) {
    enter();
    inside();
    leave();
    unheld();
    return 0;
}

// Through a recursion.
// CHECK-LABEL: {{^}}down: 0..many, returns 1..many{{$}}
void down(int n) {
    pthread_mutex_lock(&a);
    if (n > 0)
        down(n - 1);
}

// Many at once: nobody counts to the end.
// CHECK-LABEL: {{^}}all: 0..many, returns -many..many, lowest -many{{$}}
// CHECK: 0..many: pthread_mutex_lock
// CHECK: -many..many: pthread_mutex_unlock
void all(pthread_mutex_t *locks, int n) {
    for (int i = 0; i < n; i++)
        pthread_mutex_lock(&locks[i]);
    value = 5;
    for (int i = 0; i < n; i++)
        pthread_mutex_unlock(&locks[i]);
}

// Hand over hand.
// CHECK-LABEL: {{^}}search: 0..many, returns 0{{$}}
struct node {
    pthread_mutex_t lock;
    struct node *next;
    int key;
};
// CHECK: 0: pthread_mutex_lock
// CHECK: 1: pthread_mutex_lock
// CHECK: 2: pthread_mutex_unlock
// CHECK: 1: pthread_mutex_unlock
void search(struct node *node, int key) {
    pthread_mutex_lock(&node->lock);
    while (node->next->key < key) {
        struct node *next = node->next;
        pthread_mutex_lock(&next->lock);
        pthread_mutex_unlock(&node->lock);
        node = next;
    }
    pthread_mutex_unlock(&node->lock);
}

// Who does not come back has no end.
// CHECK-LABEL: {{^}}fail: 0..many{{$}}
// CHECK-LABEL: {{^}}checked: 0..many, returns 0{{$}}
// CHECK: 1: pthread_mutex_unlock @a
void fail(void) {
    pthread_mutex_lock(&a);
    abort();
}
void checked(int c) {
    pthread_mutex_lock(&a);
    if (c) {
        pthread_mutex_lock(&b);
        fail();
    }
    pthread_mutex_unlock(&a);
}

// CHECK-LABEL: {{^}}wait_with_one: 0..many, returns 0{{$}}
// CHECK: 1: pthread_cond_wait @a
// CHECK-NOT: problem
void wait_with_one(void) {
    pthread_mutex_lock(&a);
    while (!value)
        pthread_cond_wait(&changed, &a);
    pthread_mutex_unlock(&a);
}

// CHECK-LABEL: {{^}}wait_with_two: 0..many, returns 0{{$}}
// CHECK: locks.c:[[@LINE+4]]: problem: waits while it holds another lock
void wait_with_two(void) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_cond_wait(&changed, &a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
}

// A caller in another file may have taken the lock.
// CHECK-LABEL: {{^}}release: 0..many, returns -1, lowest -1{{$}}
// CHECK-NOT: problem
void release(void) { pthread_mutex_unlock(&a); }

// A region that no lock guards.
// CHECK-LABEL: {{^}}region: 0..many, returns 0{{$}}
// CHECK-NEXT: 0: durum_durable_begin{{$}}
// CHECK-NEXT: 1: durum_durable_end{{$}}
void region(void) {
    durum_durable_begin();
    value = 6;
    durum_durable_end();
}
