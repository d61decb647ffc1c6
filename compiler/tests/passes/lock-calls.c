// Functions that take locks are called in many ways.
// RUN: %clang -std=c99 -Wno-deprecated-non-prototype -O0 -g -S -emit-llvm %s -o - | %print-locks | %filecheck
// RUN: %clang -std=c99 -Wno-deprecated-non-prototype -O1 -g -fno-inline -S -emit-llvm %s -o - | %print-locks | %filecheck

// Without a prototype, each call has a type of its own.
int pthread_mutex_lock();
int pthread_mutex_unlock();
void abort(void);

static long a[8];
extern int value;

// CHECK-LABEL: {{^}}unprototyped: 0..many, returns 0{{(, unwinds [01])?$}}
// CHECK-NEXT: 0: pthread_mutex_lock @a
// CHECK-NEXT: 1: pthread_mutex_unlock @a
void unprototyped(void) {
    pthread_mutex_lock(a);
    value = 1;
    pthread_mutex_unlock(a);
}

// As if it were a function of another type, which is usual with pthread_cleanup_push.
// CHECK-LABEL: {{^}}converted: 0..many, returns 0{{(, unwinds [01])?$}}
// CHECK-NEXT: 0: pthread_mutex_lock @a
// CHECK-NEXT: 1: pthread_mutex_unlock @a
void converted(void) {
    pthread_mutex_lock(a);
    ((void (*)(void *))pthread_mutex_unlock)(a);
}

// Without the argument that it needs.
// CHECK-LABEL: {{^}}wrong: 0..many, returns 0{{(, unwinds [01])?$}}
// CHECK-NEXT: 0: pthread_mutex_lock{{$}}
// CHECK-NEXT: 1: pthread_mutex_unlock{{$}}
void wrong(void) {
    pthread_mutex_lock();
    pthread_mutex_unlock();
}

// By another name.
// CHECK-LABEL: {{^}}by_its_own: 0..many, returns 1{{(, unwinds [01])?$}}
// CHECK-LABEL: {{^}}aliased: 0..many, returns 1{{(, unwinds [01])?$}}
// CHECK-NEXT: 0: by_{{its_own|name}}
void by_its_own(void) { pthread_mutex_lock(a); }
void by_name(void) __attribute__((alias("by_its_own")));
void aliased(void) { by_name(); }

// What takes the place of a weak function may come back, and leaves its caller's locks as they are.
// CHECK-LABEL: {{^}}hooked: 0..many, returns 0{{(, unwinds [01])?$}}
// CHECK: 1: pthread_mutex_unlock @a
__attribute__((weak)) void hook(void) { abort(); }
void hooked(void) {
    pthread_mutex_lock(a);
    hook();
    pthread_mutex_unlock(a);
}

// A weak lock is there for programs without the library.
// CHECK-LABEL: {{^}}stub: 0..many, returns 1{{(, unwinds [01])?$}}
// CHECK-NEXT: 0: pthread_rwlock_rdlock
__attribute__((weak)) int pthread_rwlock_rdlock(void *lock) { return 0; }
void stub(void) { pthread_rwlock_rdlock(a); }
