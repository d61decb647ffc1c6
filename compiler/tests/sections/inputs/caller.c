/* Calls of another file in sections: where that is certain, where it may be, and by a pointer. */
#include "simulated.h"

#include <stdlib.h>
#include <string.h>

struct root {
    pthread_mutex_t lock;
    uint64_t number;
};

void callee_of_certain(uint64_t *number);
void callee_of_maybe(uint64_t *number);

void certain(struct root *root) {
    pthread_mutex_lock(&root->lock);
    callee_of_certain(&root->number);
    pthread_mutex_unlock(&root->lock);
}

__attribute__((noinline)) void maybe(struct root *root) { callee_of_maybe(&root->number); }

__attribute__((noinline)) void by_pointer(struct root *root, void (*callee)(uint64_t *)) { callee(&root->number); }

/* What variables of the program hold is gone after a crash. */
__attribute__((noinline)) void elsewhere(struct root *root, const uint64_t *first, const uint64_t *second) {
    pthread_mutex_lock(&root->lock);
    root->number += *first;
    callee_of_certain(&root->number);
    root->number ^= *second;
    pthread_mutex_unlock(&root->lock);
}

/* Also by functions that only read. */
__attribute__((noinline)) static uint64_t sum_of(const uint64_t *first) {
    uint64_t sum = 0;
    for (int i = 0; first[i]; i++)
        sum += first[i];
    return sum;
}
__attribute__((noinline)) void by_reader(struct root *root, const uint64_t *first, const char *text) {
    pthread_mutex_lock(&root->lock);
    root->number++;
    callee_of_certain(&root->number);
    root->number ^= text ? strlen(text) : sum_of(first);
    pthread_mutex_unlock(&root->lock);
}

/* In front of the first record it may be read, and not behind it. */
__attribute__((noinline)) void read_again(struct root *root, const uint64_t *first) {
    uint64_t before = *first;
    callee_of_certain(&root->number);
    root->number ^= before + *first;
}
__attribute__((noinline)) void by_callee(struct root *root, const uint64_t *first) {
    pthread_mutex_lock(&root->lock);
    read_again(root, first);
    pthread_mutex_unlock(&root->lock);
}

__attribute__((noinline)) void in_section(struct root *root, void (*pointer)(uint64_t *)) {
    pthread_mutex_lock(&root->lock);
    if (pointer)
        by_pointer(root, pointer);
    else
        maybe(root);
    pthread_mutex_unlock(&root->lock);
}

const int operations = 4;

void init(struct root *root) { root->number = 0; }

void operate(struct root *root, int number) {
    static uint64_t numbers[3] = {7, 8};
    static char text[] = "text";
    if (getenv("CALLEE"))
        return by_callee(root, numbers);
    if (getenv("READER"))
        return by_reader(root, numbers, NULL);
    if (getenv("LIBRARY"))
        return by_reader(root, numbers, text);
    if (getenv("ELSEWHERE"))
        return elsewhere(root, &numbers[0], &numbers[1]);
    /* Outside of sections each may be called. */
    maybe(root);
    if (number == 0)
        certain(root);
    else
        in_section(root, getenv("POINTER") || number % 2 == 0 ? callee_of_maybe : NULL);
}

uint64_t digest(const struct root *root) { return root->number; }
