/* Gets and puts, 80 to 20, of keys that follow a power law: `run KEYS OPERATIONS [SEED]`. Every
 * answer is checked, and how many there are in a second is told. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store.h"

enum { KEY_SIZE = 16, VALUE_SIZE = 64, GETS_OF_100 = 80 };
static const double EXPONENT = 0.99;

struct keys {
    uint64_t count, random;
    double *shares;     /* of the first keys, added up */
    uint64_t *versions; /* of each key's value; 0: it has none */
};

static uint64_t draw(struct keys *keys) {
    keys->random = keys->random * 6364136223846793005u + 1442695040888963407u;
    return keys->random >> 11;
}

/* The key at place i is drawn in proportion to 1 / (i + 1)^EXPONENT. */
static void add_shares(struct keys *keys) {
    double sum = 0;
    for (uint64_t i = 0; i < keys->count; i++)
        keys->shares[i] = sum += pow((double)(i + 1), -EXPONENT);
}

static uint64_t draw_key(struct keys *keys) {
    double share = (double)draw(keys) / (double)(UINT64_C(1) << 53) * keys->shares[keys->count - 1];
    uint64_t first = 0, last = keys->count - 1;
    while (first < last) {
        uint64_t middle = (first + last) / 2;
        if (keys->shares[middle] < share)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

static struct bytes key_text(uint64_t key, char text[KEY_SIZE + 1]) {
    snprintf(text, KEY_SIZE + 1, "key%013" PRIu64, key);
    return (struct bytes){text, KEY_SIZE};
}

static struct bytes value_text(uint64_t key, uint64_t version, char text[VALUE_SIZE]) {
    for (uint64_t i = 0; i < VALUE_SIZE / 8; i++)
        memcpy(text + 8 * i, &(uint64_t){(key ^ i << 32) * 0x9e3779b97f4a7c15 + version}, 8);
    return (struct bytes){text, VALUE_SIZE};
}

static void fail(const char *what, uint64_t key) {
    fprintf(stderr, "%s: key %" PRIu64 "\n", what, key);
    exit(1);
}

static void put(struct store *store, struct keys *keys, uint64_t key) {
    char text[KEY_SIZE + 1], value[VALUE_SIZE];
    if (!store_put(store, key_text(key, text), value_text(key, keys->versions[key] + 1, value)))
        fail("there is no memory", key);
    keys->versions[key]++;
}

static void get(const struct store *store, const struct keys *keys, uint64_t key) {
    char text[KEY_SIZE + 1], value[VALUE_SIZE];
    struct bytes found = store_get(store, key_text(key, text));
    if (!found.start != !keys->versions[key])
        fail("it is there, or not, and should not", key);
    value_text(key, keys->versions[key], value);
    if (found.start && (found.size != VALUE_SIZE || memcmp(found.start, value, VALUE_SIZE) != 0))
        fail("another value", key);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void run(struct store *store, struct keys *keys, uint64_t operations) {
    for (uint64_t key = 0; key < keys->count; key++)
        put(store, keys, key);
    double begin = seconds();
    for (uint64_t i = 0; i < operations; i++) {
        uint64_t key = draw_key(keys);
        if (draw(keys) % 100 < GETS_OF_100)
            get(store, keys, key);
        else
            put(store, keys, key);
    }
    printf("%.0f operations a second\n", (double)operations / (seconds() - begin));
    for (uint64_t key = 0; key < keys->count; key++)
        get(store, keys, key);
}

int main(int count, char **arguments) {
    uint64_t numbers[3] = {0, 0, 1};
    for (int i = 1; i < count && i <= 3; i++)
        numbers[i - 1] = strtoull(arguments[i], NULL, 10);
    struct keys keys = {.count = numbers[0], .random = numbers[2]};
    if (count < 3 || count > 4 || keys.count == 0 || numbers[1] == 0) {
        fprintf(stderr, "usage: run KEYS OPERATIONS [SEED]: numbers from 1 on\n");
        return 2;
    }
    keys.shares = calloc(keys.count, sizeof *keys.shares);
    keys.versions = calloc(keys.count, sizeof *keys.versions);
    static struct store store;
    if (!keys.shares || !keys.versions)
        fail("there is no memory", keys.count);
    add_shares(&keys);
    run(&store, &keys, numbers[1]);
    store_end(&store);
    free(keys.shares);
    free(keys.versions);
    return 0;
}
