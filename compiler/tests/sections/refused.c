// What sections may not do is an error where it is certain, with a cure (passes/ido/refusals.def).
// RUN: not %simulated/bin/durumcc -fido -O2 -ferror-limit=0 -c %s -o %t 2>&1 | %filecheck
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

struct data {
    pthread_mutex_t lock, other;
    pthread_cond_t changed;
    long number;
    volatile int seen;
    atomic_int count;
    const char *name;
    char text[16];
};
static int limit;
static _Thread_local int own;
static jmp_buf buffer;

void set_limit(int value) { limit = value; }

void volatile_access(struct data *data) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: a volatile access in a section{{.*}}[ido-volatile]
    data->seen = 1;
    pthread_mutex_unlock(&data->lock);
}

void atomic_access(struct data *data) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: an atomic operation that reads and writes in a section{{.*}}[ido-atomic]
    data->count++;
    pthread_mutex_unlock(&data->lock);
}

void exchange(struct data *data) {
    int expected = 1;
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: an atomic operation that reads and writes in a section{{.*}}[ido-atomic]
    atomic_compare_exchange_strong(&data->count, &expected, 2);
    pthread_mutex_unlock(&data->lock);
}

void global(struct data *data) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: a global variable in a section{{.*}}(limit){{.*}}[ido-global]
    data->number = limit;
    pthread_mutex_unlock(&data->lock);
}

int *thread_local_data(struct data *data) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: thread-local data in a section{{.*}}[ido-thread-local]
    data->number = own;
    pthread_mutex_unlock(&data->lock);
    return &own;
}

void error_number(struct data *data) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: thread-local data in a section{{.*}}[ido-thread-local]
    data->number = errno;
    pthread_mutex_unlock(&data->lock);
}

void assembly(struct data *data) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: assembly in a section{{.*}}[ido-assembly]
    __asm__ volatile("" ::: "memory");
    pthread_mutex_unlock(&data->lock);
}

void address(struct data *data) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: an address of the thread's stack or registers{{.*}}[ido-address]
    data->name = __builtin_frame_address(0);
    pthread_mutex_unlock(&data->lock);
}

void jump(struct data *data) {
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: setjmp or longjmp in a function with sections{{.*}}[ido-jump]
    if (setjmp(buffer))
        return;
    pthread_mutex_lock(&data->lock);
    data->number++;
    pthread_mutex_unlock(&data->lock);
}

void jump_back(struct data *data) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+2]]:{{.*}}error: setjmp or longjmp in a function with sections{{.*}}[ido-jump]
    if (data->number)
        longjmp(buffer, 1);
    pthread_mutex_unlock(&data->lock);
}

void go_to(struct data *data, int kind) {
    static const void *const places[] = {&&one, &&other};
    // CHECK-DAG: refused.c:{{.*}}error: a computed goto in a function with sections{{.*}}[ido-goto]
    pthread_mutex_lock(&data->lock);
    goto *places[kind];
one:
    data->number++;
other:
    data->number++;
    pthread_mutex_unlock(&data->lock);
}

void arguments(struct data *data, ...) {
    va_list list;
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: a function with a variable number of arguments{{.*}}[ido-arguments]
    va_start(list, data);
    pthread_mutex_lock(&data->lock);
    data->number += va_arg(list, int);
    pthread_mutex_unlock(&data->lock);
    va_end(list);
}

void given_arguments(struct data *data, va_list list) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: a function with a variable number of arguments{{.*}}[ido-arguments]
    vsnprintf(data->text, sizeof data->text, "%d", list);
    pthread_mutex_unlock(&data->lock);
}

int array(struct data *data, int n) {
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: a local array of variable size{{.*}}[ido-array]
    int numbers[n];
    pthread_mutex_lock(&data->lock);
    for (int i = 0; i < n; i++)
        numbers[i] = data->number + i;
    data->number = numbers[n / 2];
    pthread_mutex_unlock(&data->lock);
    return numbers[0];
}

void process(struct data *data) {
    pthread_mutex_lock(&data->lock);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: a thread or process ends{{.*}}[ido-process]
    data->number = fork();
    pthread_mutex_unlock(&data->lock);
}

typedef long v64 __attribute__((vector_size(1024)));
void words(struct data *data, v64 *from, v64 *to) {
    pthread_mutex_lock(&data->lock);
    v64 one = from[0] + from[1];
    // CHECK-DAG: refused.c:{{.*}}error: a region of a section needs more than 128 words{{.*}}[ido-words]
    data->number++;
    *to = one;
    to[1] = from[2] + one;
    pthread_mutex_unlock(&data->lock);
}

long end(struct data *data);
long tail(struct data *data) {
    pthread_mutex_lock(&data->lock);
    data->number++;
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: a call that must be the function's end{{.*}}[ido-tail-call]
    __attribute__((musttail)) return end(data);
}

void wait(struct data *data) {
    pthread_mutex_lock(&data->lock);
    pthread_mutex_lock(&data->other);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: a section waits with more than the lock{{.*}}[ido-wait]
    pthread_cond_wait(&data->changed, &data->lock);
    pthread_mutex_unlock(&data->other);
    pthread_mutex_unlock(&data->lock);
}

// CHECK-DAG: refused.c:[[@LINE+2]]:{{.*}}error: a lock is let go, and none is held{{.*}}[ido-release]
static __attribute__((noinline)) void release(struct data *data) {
    pthread_mutex_unlock(&data->lock);
}
static __attribute__((noinline)) void wait_without(struct data *data) {
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{.*}}error: a wait with a lock that is not held{{.*}}[ido-wait-without]
    pthread_cond_wait(&data->changed, &data->lock);
}
int main(void) {
    struct data data = {.number = 1};
    wait_without(&data);
    release(&data);
}
