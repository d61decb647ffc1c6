// What -fdurable-report tells of a file: the sections of each function, the places where a record may be made, with
// what it has and what follows, and memory whose contents nobody knows.
//
// RUN: %durumcc -fido -fdurable-report -O2 -Wall -Wextra -Werror -c %s -o %t.o 2>&1 | %filecheck
// RUN: %durumcc -fido -O2 -c %s -o %t.o 2>&1 | count 0
#include <nv.h>
#include <pthread.h>

struct node {
    struct node *next;
    long value;
};

struct list {
    pthread_mutex_t lock;
    struct node *head;
    long count, sum;
    long values[100];
};

// CHECK: report.c:[[#@LINE+2]]: take: memory of no type: its size is no sizeof of 'struct node'
struct node *take(size_t size) {
    return nv_malloc(size);
}

// CHECK: report.c: push: 1 section; records before 1 store, 1 release, 0 calls
// CHECK-NEXT: report.c:[[#@LINE+4]]: push: {{[34]}} words of live-ins, 3 stores: it overwrites what {{.*}}report.c:[[#@LINE+5]] reads
void push(struct list *list, long value) {
    pthread_mutex_lock(&list->lock);
    struct node *node = nv_malloc(sizeof *node);
    node->value = value;
    node->next = list->head;
    list->head = node;
    pthread_mutex_unlock(&list->lock);
}

// CHECK: report.c: count: 1 section; records before 1 store, 1 release, 0 calls
// CHECK-NEXT: report.c:[[#@LINE+3]]: count: 2 words of live-ins, 1 store: it overwrites what {{.*}}report.c:[[#@LINE+3]] reads; it is one word, which needs no record if that is all
void count(struct list *list) {
    pthread_mutex_lock(&list->lock);
    list->count++;
    pthread_mutex_unlock(&list->lock);
}

// CHECK: report.c: both: 1 section; records before 2 stores, 2 releases, 0 calls
// CHECK: report.c:[[#@LINE+5]]: both: 2 words of live-ins, 2 stores: it follows what {{.*}}report.c:[[#@LINE+4]] does once
// CHECK: report.c:[[#@LINE+6]]: both: {{.*}}: a lock is let go, and others may be held
void both(struct list *one, struct list *other) {
    pthread_mutex_lock(&one->lock);
    pthread_mutex_lock(&other->lock);
    one->sum = 0;
    other->sum = 1;
    pthread_mutex_unlock(&one->lock);
    other->count = 2;
    other->sum = 2;
    pthread_mutex_unlock(&other->lock);
}
