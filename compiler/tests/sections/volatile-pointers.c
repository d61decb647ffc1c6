// Pointers to what is gone in the next run, stored in the heap, where the compiler sees both.
// RUN: %durumcc -fido -O2 -Wall -Wdurum-volatile-pointer -c %s -o %t 2>&1 | %filecheck --implicit-check-not=warning:
// RUN: %durumcc -fido -O2 -Wall -Werror -c %s -o %t
// RUN: not %durumcc -fido -O2 -Werror -Wdurum-volatile-pointer -c %s -o %t
#include <nv.h>
#include <pthread.h>
#include <stdlib.h>

struct node {
    struct node *next;
    const char *name;
    void (*call)(struct node *);
    int *numbers;
};
static pthread_mutex_t lock;
static durum_durable struct node *head;
static durum_durable int own_numbers[4];
static int numbers[4];
void fill(char *buffer);
void call(struct node *node);

// CHECK-DAG: warning: the value that 'title' begins with has the address of a constant
durum_durable const char *title = "title";
durum_durable const char text[] = "text";

void stores(struct node *other, int which) {
    char buffer[16];
    fill(buffer);
    pthread_mutex_lock(&lock);
    struct node *node = nv_malloc(sizeof *node);
    // CHECK-DAG: [[@LINE+1]]:{{.*}}warning: the address of a local variable is stored in the heap, which the next run has elsewhere
    node->name = buffer;
    // CHECK-DAG: [[@LINE+1]]:{{.*}}warning: the address of a function is stored in the heap
    node->call = call;
    // CHECK-DAG: [[@LINE+1]]:{{.*}}warning: the address of a variable that does not last
    node->numbers = which ? numbers : own_numbers;
    // CHECK-DAG: [[@LINE+1]]:{{.*}}warning: the address of memory that does not last
    node->next = malloc(sizeof *node);
    // CHECK-DAG: [[@LINE+1]]:{{.*}}warning: the address of a constant of the program
    title = "other";
    other->name = "unknown";
    head = node;
    pthread_mutex_unlock(&lock);
}
