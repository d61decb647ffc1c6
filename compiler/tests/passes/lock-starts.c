// What a thread or the program begins with is entered without locks.
// RUN: %clang -O1 -fno-inline -g -S -emit-llvm %s -o - | %print-locks | %filecheck
#include <pthread.h>
#include <threads.h>

extern int value;
extern pthread_mutex_t lock;
typedef void *routine(void *);
extern routine *known;

// CHECK-DAG: {{^}}start: 0, returns 0
static void *start(void *argument) { return value++, argument; }

// CHECK-DAG: {{^}}start_of_c: 0, returns 0
static int start_of_c(void *argument) { return argument != NULL; }

// Who has the address elsewhere may call it anywhere.
// CHECK-DAG: {{^}}start_or_callback: 0..many, returns 0
static void *start_or_callback(void *argument) { return value++, argument; }

// It is an argument of the new thread here, which may call it.
// CHECK-DAG: {{^}}argument_of_start: 0..many, returns 0
static void *argument_of_start(void *argument) { return value++, argument; }

// A caller in the file counts.
// CHECK-DAG: {{^}}start_or_callee: 0..1, returns 0
static void *start_or_callee(void *argument) { return value++, argument; }

// Others may call it, too.
// CHECK-DAG: {{^}}seen: 0..many, returns 0
void *seen(void *argument) { return value++, argument; }

// CHECK-DAG: {{^}}constructor: 0, returns 0
__attribute__((constructor)) static void constructor(void) {
    pthread_mutex_lock(&lock);
    start_or_callee(NULL);
    pthread_mutex_unlock(&lock);
}

// A section may have called exit.
// CHECK-DAG: {{^}}destructor: 0..many, returns 0
__attribute__((destructor)) static void destructor(void) { value = 2; }

void begin(void) {
    pthread_t thread;
    thrd_t other;
    pthread_create(&thread, NULL, start, NULL);
    thrd_create(&other, start_of_c, NULL);
    known = start_or_callback;
    pthread_create(&thread, NULL, start_or_callback, (void *)argument_of_start);
    pthread_create(&thread, NULL, start_or_callee, NULL);
    pthread_create(&thread, NULL, seen, NULL);
}
