// What threads do while they hold a lock does the same when each region of it is done two times.
// RUN: python3 %S/inputs/twice.py --clang %clang --passes %passes %s
// RUN: python3 %S/inputs/twice.py --clang %clang --passes %passes --leave-out 1 %s
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, counting = PTHREAD_MUTEX_INITIALIZER;

struct node {
    struct node *next;
    uint64_t value;
};

static struct node *stack;
static uint64_t pushed, popped;

static void push(uint64_t value) {
    struct node *node = malloc(sizeof *node);
    node->value = value;
    pthread_mutex_lock(&lock);
    node->next = stack;
    stack = node;
    pushed++;
    pthread_mutex_unlock(&lock);
}

static uint64_t pop(void) {
    pthread_mutex_lock(&lock);
    struct node *node = stack;
    uint64_t value = 0;
    if (node) {
        stack = node->next;
        value = node->value;
        pthread_mutex_lock(&counting);
        popped++;
        pthread_mutex_unlock(&counting);
    }
    pthread_mutex_unlock(&lock);
    free(node);
    return value;
}

static struct node *queue_head, *queue_tail;

static void put(uint64_t value) {
    struct node *node = calloc(1, sizeof *node);
    node->value = value;
    pthread_mutex_lock(&lock);
    if (queue_tail)
        queue_tail->next = node;
    else
        queue_head = node;
    queue_tail = node;
    pthread_mutex_unlock(&lock);
}

static int numbers[100];

static void shift(int by) {
    pthread_mutex_lock(&lock);
    for (int i = by; i < 100; i++)
        numbers[i - by] = numbers[i] + 1;
    pthread_mutex_unlock(&lock);
}

// What one turn reads, the next one overwrites; neither does both.
static void shift_by_one(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 99; i++)
        numbers[i] = numbers[i + 1] + i;
    pthread_mutex_unlock(&lock);
}

// Where this is inlined, the compiler knows of each turn that its two places are not one, which says
// nothing of two turns.
static inline void move(int *restrict to, const int *restrict from) { *to = 3 * *from; }

static void move_all(int *to, const int *from) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 99; i++)
        move(&to[i], &from[i]);
    pthread_mutex_unlock(&lock);
}

static void reverse(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0, j = 99; i < j; i++, j--) {
        int number = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = number;
    }
    pthread_mutex_unlock(&lock);
}

static double sums[16];

static void smooth(double factor) {
    pthread_mutex_lock(&lock);
    double last = 0;
    for (int i = 0; i < 16; i++) {
        last = factor * last + sums[i];
        sums[i] = last;
    }
    pthread_mutex_unlock(&lock);
}

// What the last turn of a loop reads is written behind it, by way of the number that one turn later has.
static int search(long i, const char *restrict last) {
    pthread_mutex_lock(&lock);
    int sum = 0;
    for (;;) {
        sum += numbers[i];
        if (last[i])
            break;
        i--;
    }
    numbers[i + 1] = sum;
    pthread_mutex_unlock(&lock);
    return sum;
}

// Memory may be read as one type and be written as another.
static void to_float(void *place, int n) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n; i++) {
        int number = ((int *)place)[i];
        ((float *)place)[i] = number;
    }
    pthread_mutex_unlock(&lock);
}

// That the two are apart is told of one turn.
static void count_up(int **from, int **to, int n) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n; i++) {
        int *one = from[i], *other = to[i];
        __builtin_assume_separate_storage(one, other);
        *other = *one + 1;
    }
    pthread_mutex_unlock(&lock);
}

static unsigned seen;

// A local array, a switch and a way out of the section in the middle.
static int collect(int kind) {
    int found[8];
    if (pthread_mutex_trylock(&lock) != 0)
        return -1;
    for (int i = 0; i < 8; i++)
        found[i] = numbers[8 * kind + i];
    switch (kind) {
    case 0:
        for (int i = 1; i < 8; i++)
            found[i] += found[i - 1];
        break;
    case 1:
        memmove(found, found + 1, 7 * sizeof *found);
        break;
    default:
        pthread_mutex_unlock(&lock);
        return 0;
    }
    int sum = 0;
    for (int i = 0; i < 8; i++)
        sum = 31 * sum + found[i];
    seen++;
    pthread_mutex_unlock(&lock);
    return sum;
}

static uint64_t mixed;

static void mix(uint64_t value) { mixed = (mixed ^ value) * 0x9e3779b97f4a7c15u; }

static void *work(void *number) {
    for (int i = 0; i < 200; i++) {
        push((uint64_t)(intptr_t)number + i);
        pop();
    }
    return NULL;
}

int main(void) {
    for (int i = 0; i < 100; i++)
        numbers[i] = i * i;
    for (int i = 0; i < 16; i++)
        sums[i] = 1.0 / (i + 1);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 20; i++)
            push(i * round);
        for (int i = 0; i < 10; i++)
            mix(pop());
        put(round);
        shift(round);
        shift_by_one();
        move_all(numbers, numbers + 1);
        reverse();
        smooth(0.5);
        for (int kind = 0; kind < 3; kind++)
            mix(collect(kind));
        char last[32] = {[3] = 1};
        mix(search(9, last));
        int *floats = malloc(10 * sizeof *floats);
        for (int i = 0; i < 10; i++)
            floats[i] = i + round;
        to_float(floats, 10);
        for (int i = 0; i < 10; i++)
            mix(((float *)floats)[i]);
        free(floats);
        int one = 1, two = 2;
        count_up((int *[]){&one, &two}, (int *[]){&two, &one}, 2);
        mix(100 * one + two);
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)(1000 * i));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 100; i++)
        mix(numbers[i]);
    for (int i = 0; i < 16; i++)
        mix((uint64_t)(sums[i] * 1e9));
    for (struct node *node = queue_head; node; node = node->next)
        mix(node->value);
    printf("%llu pushed, %llu popped, %u seen, %llx\n", (unsigned long long)pushed, (unsigned long long)popped, seen,
           (unsigned long long)mixed);
}
