// Where regions begin, and what they need. At -O1, with what is inlined left apart.
// RUN: %clang -O1 -g -fno-inline -fno-vectorize -S -emit-llvm %s -o - | %print-regions | %filecheck
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct node {
    struct node *next;
    int value;
};
struct node *stack;
int count, other;

// The head is read before something is written that may be the head, which is the first store as well; and the counter
// is read in front of that, as nothing between can be the counter.
// CHECK-LABEL: {{^}}push: 1 region
// CHECK-NEXT: cuts.c:[[@LINE+3]]: 3 live-ins, would overwrite what cuts.c:[[@LINE+3]] reads
void push(struct node *node) {
    pthread_mutex_lock(&lock);
    node->next = stack;
    stack = node;
    count++;
    pthread_mutex_unlock(&lock);
}

// So it is where an atomic is stored between, as that is another place; not where that may be the counter.
// CHECK-LABEL: {{^}}announce: 1 region
void announce(void) {
    pthread_mutex_lock(&lock);
    __atomic_store_n(&other, 1, __ATOMIC_SEQ_CST);
    count++;
    pthread_mutex_unlock(&lock);
}

// CHECK-LABEL: {{^}}announce_at: 2 regions
void announce_at(int *place) {
    pthread_mutex_lock(&lock);
    __atomic_store_n(place, 1, __ATOMIC_RELEASE);
    count++;
    pthread_mutex_unlock(&lock);
}

// What is only written needs no cut.
// CHECK-LABEL: {{^}}write: 1 region
// CHECK-NEXT: 1 live-in{{$}}
void write(int value) {
    pthread_mutex_lock(&lock);
    count = value;
    other = value;
    pthread_mutex_unlock(&lock);
}

// One cut in front of the loop is enough for what was read before it, and none is in it.
// CHECK-LABEL: {{^}}fill: 1 region
// CHECK-NEXT: 3 live-ins, would overwrite what
void fill(int *numbers, int n) {
    pthread_mutex_lock(&lock);
    int first = numbers[0];
    for (int i = 0; i < n; i++)
        numbers[i] = first + i;
    pthread_mutex_unlock(&lock);
}

// A lock in a lock is a place of its own: regions end and begin there.
// CHECK-LABEL: {{^}}nested: 3 regions
void nested(pthread_mutex_t *inner) {
    pthread_mutex_lock(&lock);
    other = 1;
    pthread_mutex_lock(inner);
    other = 2;
    pthread_mutex_unlock(inner);
    other = 3;
    pthread_mutex_unlock(&lock);
}

// What only reads needs no record.
// CHECK-LABEL: {{^}}get: 0 regions
int get(void) {
    pthread_mutex_lock(&lock);
    int value = count;
    pthread_mutex_unlock(&lock);
    return value;
}

// Nobody holds a lock here: it is no section.
// CHECK-NOT: main
int main(void) {
    count++;
    return 0;
}
