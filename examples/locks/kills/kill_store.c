/* Kills a program that changes the durable store, again and again, and looks at what is there each
 * time it is opened:
 *
 *   kill_store KILLS SEED
 *
 * Every change that was told of is there, and the one that was interrupted as a whole or not at
 * all. What is told is in a file beside the heap. COME_BACK names a command that puts another heap
 * with the same contents in the place of the one that it is given. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <nv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store.h"

enum { KEYS = 3000, TURNS_TO_DELETION = 7 };

/* Versions of each key. */
struct told {
    uint64_t begun[KEYS], ended[KEYS], changes;
};

static durum_durable struct store store;
static volatile struct told *told;

static void fail(const char *what, uint64_t key, uint64_t version) {
    fprintf(stderr, "%s: key %llu, version %llu\n", what, (unsigned long long)key,
            (unsigned long long)version);
    exit(3);
}

static struct bytes key_of(uint64_t key, char text[KEY_SIZE_MAX]) {
    return (struct bytes){text,
                          (size_t)snprintf(text, KEY_SIZE_MAX, "%llu", (unsigned long long)key)};
}

/* Nothing for version 0, and for each that is a multiple of some. */
static struct bytes value_of(uint64_t key, uint64_t version, char text[VALUE_SIZE_MAX]) {
    if (version % TURNS_TO_DELETION == 0)
        return (struct bytes){0};
    size_t size = 1 + (version / 2 * 37 + key) % VALUE_SIZE_MAX;
    memset(text, (int)(version + key), size);
    return (struct bytes){text, size};
}

static void change(uint64_t key) {
    char key_text[KEY_SIZE_MAX], text[VALUE_SIZE_MAX];
    uint64_t version = ++told->begun[key];
    struct bytes value = value_of(key, version, text);
    if (value.start ? !store_put(&store, key_of(key, key_text), value)
                    : !store_delete(&store, key_of(key, key_text)))
        fail("a change was refused", key, version);
    told->ended[key] = version;
    told->changes++;
}

static bool is_there(uint64_t key, uint64_t version) {
    char key_text[KEY_SIZE_MAX], text[VALUE_SIZE_MAX];
    struct bytes found = store_get(&store, key_of(key, key_text));
    struct bytes value = value_of(key, version, text);
    return !found.start == !value.start && found.size == value.size &&
           (!found.start || memcmp(found.start, value.start, found.size) == 0);
}

static void examine(void) {
    size_t count = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        if (is_there(key, told->begun[key]))
            told->ended[key] = told->begun[key];
        else if (!is_there(key, told->ended[key]))
            fail("another value", key, told->ended[key]);
        told->begun[key] = told->ended[key];
        count += told->ended[key] % TURNS_TO_DELETION != 0;
    }
    if (store.count != count)
        fail("the count is wrong", store.count, count);
}

static void open_heap(const char *path) {
    if (nv_open(path) == 0)
        return;
    fprintf(stderr, "%s: %s\n", path, nv_error());
    exit(4);
}

static void run(const char *path, uint64_t random) {
    open_heap(path);
    examine();
    for (;; random = random * 6364136223846793005u + 1442695040888963407u)
        change((random >> 33) % KEYS);
}

/* The child is killed after some nanoseconds; 0: it ends by itself. */
static int status_of_child(const char *path, uint64_t random, long nanoseconds) {
    pid_t child = fork();
    if (child == 0) {
        if (nanoseconds)
            run(path, random);
        open_heap(path);
        examine();
        exit(0);
    }
    if (nanoseconds) {
        struct timespec a_moment = {0, nanoseconds};
        nanosleep(&a_moment, NULL);
        kill(child, SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

int main(int count, char **arguments) {
    /* In memory: what is killed has lost nothing else. */
    char directory[] = "/dev/shm/durum-store-XXXXXX";
    if (count != 3 || !mkdtemp(directory)) {
        fprintf(stderr, "usage: kill_store KILLS SEED\n");
        return 2;
    }
    const int kills_max = atoi(arguments[1]);
    srand((unsigned)atoi(arguments[2]));
    char path[64], file_path[64], remove[64];
    snprintf(path, sizeof path, "%s/heap", directory);
    snprintf(file_path, sizeof file_path, "%s/told", directory);
    snprintf(remove, sizeof remove, "rm -r %s", directory);
    int file = open(file_path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *told) != 0)
        return 2;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int kills = 0; kills < kills_max; kills++) {
        int status = status_of_child(path, (uint64_t)rand() << 20, 1000000 + rand() % 40000000);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
            fprintf(stderr, "%s after %d kills: status %#x\n", directory, kills, (unsigned)status);
            return 1;
        }
    }
    if (status_of_child(path, 0, 0) != 0)
        return 1;
    if (getenv("COME_BACK")) {
        setenv("HEAP", path, 1);
        if (system("$COME_BACK \"$HEAP\"") != 0 || status_of_child(path, 0, 0) != 0)
            return 1;
    }
    printf("%d kills, %llu changes\n", kills_max, (unsigned long long)told->changes);
    return told->changes == 0 || system(remove) != 0;
}
