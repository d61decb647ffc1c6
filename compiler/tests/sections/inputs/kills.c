/* Four threads whose sections are killed again and again: each time the heap is opened, all operations that a thread has
 * told of are there, each one once, and at most one more of each thread.
 *
 *   program KILLS SEED
 *
 * The heap is one of the service that SERVICE names, if that is set.
 *
 * Sections are given the root: they go on before nv_open has returned, and before a variable of the program knows it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <nv.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ACCOUNTS = 8, BUCKETS = 4, KEYS = 16, MONEY = 1000, KINDS = 7 };

struct node {
    struct node *next;
    uint64_t value;
};
struct account {
    pthread_mutex_t lock;
    int64_t money;
};
struct bucket {
    pthread_rwlock_t lock;
    uint64_t values[THREADS][KEYS];
};
struct root {
    pthread_mutex_t lock;
    struct node *stack;
    uint64_t count, popped;
    struct account accounts[ACCOUNTS];
    struct bucket buckets[BUCKETS];
    pthread_spinlock_t spin;
    uint64_t spun[THREADS];
    /* Of one thread alone, which needs no lock. */
    struct kept {
        _Alignas(64) uint64_t sum, sums;
    } kept[THREADS];
    int is_made;
    /* How many operations of each thread are there. */
    _Alignas(64) uint64_t done[THREADS][8];
};

static struct root *root;
/* In a file: what threads have told of, and behind that whether those of a process are at work. */
static volatile uint64_t *told;

static void fail(const char *what, uint64_t found, uint64_t expected) {
    fprintf(stderr, "%s: %llu, and not %llu\n", what, (unsigned long long)found, (unsigned long long)expected);
    exit(3);
}

/* A lock of the program, and a variable that lasts. */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
__attribute__((annotate("durum_durable"))) static uint64_t counts[THREADS];

static uint64_t value_of(unsigned thread, uint64_t number) { return number * THREADS + thread + 1; }

__attribute__((noinline)) static void push(struct root *root, unsigned thread, uint64_t number) {
    struct node *node = nv_malloc(sizeof *node);
    pthread_mutex_lock(&root->lock);
    node->value = value_of(thread, number);
    node->next = root->stack;
    root->stack = node;
    root->count++;
    root->done[thread][0]++;
    pthread_mutex_unlock(&root->lock);
}

__attribute__((noinline)) static void pop(struct root *root, unsigned thread) {
    pthread_mutex_lock(&root->lock);
    struct node *node = root->stack;
    if (node) {
        root->stack = node->next;
        root->popped += node->value;
        root->count--;
        nv_free(node);
    }
    root->done[thread][0]++;
    pthread_mutex_unlock(&root->lock);
}

/* The first lock goes before the second one. */
__attribute__((noinline)) static void transfer(struct root *root, unsigned thread, uint64_t number) {
    unsigned from = number % ACCOUNTS, to = (number / ACCOUNTS + thread) % ACCOUNTS;
    if (from == to)
        to = (to + 1) % ACCOUNTS;
    struct account *first = &root->accounts[from < to ? from : to], *second = &root->accounts[from < to ? to : from];
    int64_t money = from < to ? 1 : -1;
    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(&second->lock);
    first->money -= money;
    second->money += money;
    pthread_mutex_unlock(&first->lock);
    root->done[thread][0]++;
    pthread_mutex_unlock(&second->lock);
}

/* In a function of its own, by an array that has an address. */
__attribute__((noinline)) static uint64_t copy(uint64_t *values, const uint64_t *from) {
    uint64_t sum = 0;
    for (int i = 0; i < KEYS; i++) {
        values[i] = from[i];
        sum += from[i];
    }
    return sum;
}

__attribute__((noinline)) static void put(struct root *root, unsigned thread, uint64_t number) {
    uint64_t values[KEYS];
    for (int i = 0; i < KEYS; i++)
        values[i] = number + (unsigned)i;
    struct bucket *bucket = &root->buckets[number / KINDS % BUCKETS];
    pthread_rwlock_wrlock(&bucket->lock);
    uint64_t sum = copy(bucket->values[thread], values);
    root->done[thread][1] = sum;
    root->done[thread][0]++;
    pthread_rwlock_unlock(&bucket->lock);
}

__attribute__((noinline)) static void spin(struct root *root, unsigned thread) {
    pthread_spin_lock(&root->spin);
    root->spun[thread]++;
    root->done[thread][0]++;
    pthread_spin_unlock(&root->spin);
}

__attribute__((noinline)) static void count(struct root *root, unsigned thread) {
    pthread_mutex_lock(&counting);
    counts[thread]++;
    root->done[thread][0]++;
    pthread_mutex_unlock(&counting);
}

__attribute__((noinline)) static void add(struct kept *kept) {
    durum_durable_begin();
    kept->sums += kept->sum;
    durum_durable_end();
}

__attribute__((noinline)) static void keep(struct root *root, unsigned thread, uint64_t number) {
    durum_durable_begin();
    root->kept[thread].sum += number;
    add(&root->kept[thread]);
    root->done[thread][0]++;
    durum_durable_end();
}

static void *work(void *argument) {
    unsigned thread = (unsigned)(intptr_t)argument;
    for (uint64_t number = root->done[thread][0];; number++) {
        switch (number % KINDS) {
        case 0: push(root, thread, number); break;
        case 1: transfer(root, thread, number); break;
        case 2: put(root, thread, number); break;
        case 3: spin(root, thread); break;
        case 4: pop(root, thread); break;
        case 5: count(root, thread); break;
        case 6: keep(root, thread, number); break;
        }
        told[thread] = number + 1;
    }
    return NULL;
}

static uint64_t how_many(uint64_t done, uint64_t kind) { return (done + KINDS - 1 - kind) / KINDS; }

static void examine(void) {
    uint64_t pushed = 0, all = 0, found = 0, count = 0;
    for (unsigned thread = 0; thread < THREADS; thread++) {
        uint64_t done = root->done[thread][0];
        if (done != told[thread] && done != told[thread] + 1)
            fail("operations that are there", done, told[thread]);
        for (uint64_t number = 0; number < done; number += KINDS)
            pushed++, all += value_of(thread, number);
        if (root->spun[thread] != how_many(done, 3))
            fail("turns", root->spun[thread], how_many(done, 3));
        if (counts[thread] != how_many(done, 5))
            fail("a variable that lasts", counts[thread], how_many(done, 5));
        uint64_t sum = 0, sums = 0;
        for (uint64_t number = 6; number < done; number += KINDS)
            sum += number, sums += sum;
        if (root->kept[thread].sum != sum || root->kept[thread].sums != sums)
            fail("what no lock guards", root->kept[thread].sums, sums);
        for (uint64_t bucket = 0; bucket < BUCKETS; bucket++) {
            const uint64_t *values = root->buckets[bucket].values[thread];
            uint64_t last = 0;
            for (uint64_t number = 2; number < done; number += KINDS)
                last = number / KINDS % BUCKETS == bucket ? number : last;
            for (unsigned i = 0; last && i < KEYS; i++)
                if (values[i] != last + i)
                    fail("a value", values[i], last + i);
        }
    }
    for (const struct node *node = root->stack; node; node = node->next, count++) {
        if (count > pushed)
            fail("nodes", count, pushed);
        found += node->value;
    }
    if (found + root->popped != all)
        fail("what was pushed", found + root->popped, all);
    if (count != root->count)
        fail("the count", root->count, count);
    int64_t money = 0;
    for (int i = 0; i < ACCOUNTS; i++)
        money += root->accounts[i].money;
    if (money != ACCOUNTS * MONEY)
        fail("money", (uint64_t)money, ACCOUNTS * MONEY);
}

static void open_heap(const char *path) {
    if (nv_open(path)) {
        fprintf(stderr, "nv_open: %s\n", nv_error());
        exit(4);
    }
    root = nv_root(sizeof *root);
}

static void make(struct root *root) {
    for (int i = 0; i < ACCOUNTS; i++) {
        pthread_mutex_lock(&root->accounts[i].lock);
        root->accounts[i].money = MONEY;
        pthread_mutex_unlock(&root->accounts[i].lock);
    }
}

static void run(const char *path) {
    open_heap(path);
    examine();
    pthread_t running[THREADS];
    for (unsigned thread = 0; thread < THREADS; thread++)
        told[thread] = root->done[thread][0];
    told[THREADS] = 1;
    for (intptr_t thread = 0; thread < THREADS; thread++)
        pthread_create(&running[thread], NULL, work, (void *)thread);
    pause();
}

/* With nanoseconds it is killed so long after it began, or after its threads did. */
static int in_child(void (*body)(const char *), const char *path, long nanoseconds, int at_work) {
    told[THREADS] = 0;
    pid_t child = fork();
    if (child == 0) {
        body(path);
        exit(0);
    }
    if (nanoseconds) {
        struct timespec a_moment = {0, nanoseconds}, a_while = {0, 1000000};
        /* To open the heap takes long on a busy machine. Who never gets to work is told by the threads' counts. */
        for (int waited = 0; at_work && !told[THREADS] && waited < 10000; waited++)
            nanosleep(&a_while, NULL);
        nanosleep(&a_moment, NULL);
        kill(child, SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

static void set_up(const char *path) { open_heap(path), make(root); }
static void look(const char *path) { open_heap(path), examine(); }

int main(int argc, char **argv) {
    /* In memory: what is killed has lost nothing else. */
    char directory[] = "/dev/shm/durum-kills-XXXXXX";
    if (argc != 3 || !mkdtemp(directory))
        return 2;
    const int kills_max = atoi(argv[1]);
    char path[256], file_path[64], remove[64];
    const char *service = getenv("SERVICE");
    snprintf(path, sizeof path, service ? "%s:heap" : "%s/heap", service ? service : directory);
    snprintf(file_path, sizeof file_path, "%s/told", directory);
    snprintf(remove, sizeof remove, "rm -r %s", directory);
    int file = open(file_path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096))
        return 2;
    told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    srand((unsigned)atoi(argv[2]));
    if (in_child(set_up, path, 0, 0))
        return 3;
    for (int kills = 0; kills < kills_max; kills++) {
        int status = in_child(run, path, 1000000 + rand() % 60000000, kills % 2);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
            fprintf(stderr, "%s after %d kills: status %#x\n", directory, kills, (unsigned)status);
            return 1;
        }
    }
    if (in_child(look, path, 0, 0))
        return 1;
    uint64_t all = 0;
    for (unsigned thread = 0; thread < THREADS; thread++)
        all += told[thread];
    printf("%d kills, %llu operations\n", kills_max, (unsigned long long)all);
    return all == 0 || system(remove);
}
