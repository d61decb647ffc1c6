/* Global variables that last, of the file and of a function, with values and without; under locks that do, and that do
 * not: those have names. */
#include "simulated.h"

struct node {
    struct node *next;
    uint64_t value;
};
struct root {
    int unused;
};

static durum_durable pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int number;
    pthread_mutex_t lock;
} locks[3];
static durum_durable struct node *stack;
durum_durable uint64_t pushed = 5, popped;
static durum_durable struct {
    uint64_t numbers[6];
    const char name[6];
} table = {{1, 2, 3}, "table"};

static void push(uint64_t value) {
    pthread_mutex_lock(&lock);
    struct node *node = nv_malloc(sizeof *node);
    node->value = value;
    node->next = stack;
    stack = node;
    pushed++;
    pthread_mutex_unlock(&lock);
}

static void pop(void) {
    pthread_mutex_lock(&other_lock);
    if (stack) {
        popped += stack->value;
        stack = stack->next;
    }
    pthread_mutex_unlock(&other_lock);
}

__attribute__((noinline)) static void count(pthread_mutex_t *one) {
    pthread_mutex_lock(one);
    popped += 3;
    pushed += 2;
    pthread_mutex_unlock(one);
}

__attribute__((noinline)) static uint64_t next_number(void) {
    static durum_durable uint64_t calls = 100;
    return calls++;
}

static void turn(int by) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 6; i++)
        table.numbers[i] = table.numbers[(i + by) % 6] + next_number();
    pthread_mutex_unlock(&lock);
}

/* Where the characters are is another place in each run. */
static void call(int kind) {
    static durum_durable char text[6];
    const char *name = kind % 2 ? "first" : "other";
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 5; i++) {
        text[i] = name[i] + (text[4 - i] & 1);
        pushed += next_number();
    }
    popped += text[kind % 5];
    pthread_mutex_unlock(&lock);
}

const int operations = 30;

void init(struct root *root) { root->unused = 0; }

void operate(struct root *root, int number) {
    (void)root;
    switch (number % 5) {
    case 0:
        return push(number);
    case 1:
        return pop();
    case 3:
        return call(number);
    case 2:
        return count(&locks[number % 3].lock);
    default:
        return turn(number / 5);
    }
}

uint64_t digest(const struct root *root) {
    uint64_t sum = root->unused + pushed + 3 * popped + table.name[2];
    for (int i = 0; i < 6; i++)
        sum = 31 * sum + table.numbers[i];
    for (const struct node *node = stack; node; node = node->next)
        sum = 31 * sum + node->value;
    return sum;
}
