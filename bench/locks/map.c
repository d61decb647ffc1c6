/* A map of fixed size, with a lock for each chain: keys of 16 bytes, values of 8. All keys are
 * there before. */
#include "kernel.h"

#define BUCKETS 1024

struct map_node {
    struct map_node *next;
    uint64_t key[2];
    uint64_t value;
};

struct map_bucket {
    pthread_mutex_t lock;
    struct map_node *first;
};

struct map {
    struct map_bucket buckets[BUCKETS];
};

/* The sets of a hundred operations. */
static const int sets[] = {50, 10, 50, 10};
const struct row rows[] = {
    {"map_50", 1}, {"map_10", 1}, {"map_50_2", 2}, {"map_10_2", 2}, {NULL, 0}};

/* What a section uses is an argument: a variable of the program is gone when the section goes on.
 */
static struct map *the_map;
static uint64_t keys;
/* What was found, by all threads. */
static atomic_ullong found;

static struct map_bucket *bucket_of(struct map *map, const uint64_t key[2]) {
    return &map->buckets[random_at(key[0] ^ key[1]) % BUCKETS];
}

static struct map_node *node_of(struct map_bucket *bucket, const uint64_t key[2]) {
    struct map_node *node = bucket->first;
    while (node && (node->key[0] != key[0] || node->key[1] != key[1]))
        node = node->next;
    return node;
}

static void set(struct map *map, const uint64_t key[2], uint64_t value) {
    struct map_bucket *bucket = bucket_of(map, key);
    pthread_mutex_lock(&bucket->lock);
    struct map_node *node = node_of(bucket, key);
    BEGIN(&bucket->lock);
    if (node) {
        SET(node->value, value);
    } else {
        node = NEW(struct map_node);
        INIT(node->key[0], key[0]);
        INIT(node->key[1], key[1]);
        INIT(node->value, value);
        INIT(node->next, bucket->first);
        SET(bucket->first, node);
    }
    COMMIT();
    pthread_mutex_unlock(&bucket->lock);
}

static uint64_t get(struct map *map, const uint64_t key[2]) {
    struct map_bucket *bucket = bucket_of(map, key);
    pthread_mutex_lock(&bucket->lock);
    struct map_node *node = node_of(bucket, key);
    uint64_t value = node ? node->value : 0;
    pthread_mutex_unlock(&bucket->lock);
    return value;
}

static void key_at(uint64_t index, uint64_t key[2]) {
    key[0] = random_at(index);
    key[1] = index;
}

void set_up(long size) {
    struct map *map = memory_root(sizeof *map);
    the_map = map;
    keys = (uint64_t)size;
    for (int i = 0; i < BUCKETS; i++)
        pthread_mutex_init(&map->buckets[i].lock, NULL);
}

void prepare(int row) {
    (void)row;
    for (uint64_t i = 0; i < keys; i++) {
        uint64_t key[2];
        key_at(i, key);
        set(the_map, key, i);
    }
    atomic_store(&found, 0);
}

/* Each thread has keys of its own, so that it knows what there is. */
void run(int row, int thread, int threads, long operations) {
    struct map *map = the_map;
    uint64_t sum = 0;
    for (long i = 0; i < operations; i++) {
        uint64_t random = random_at((uint64_t)i * 2 + (uint64_t)thread), key[2];
        uint64_t index =
            (random >> 8) % (keys / (uint64_t)threads) * (uint64_t)threads + (uint64_t)thread;
        key_at(index, key);
        if ((random & 0xff) * 100 < (uint64_t)sets[row] * 256)
            set(map, key, random);
        else
            sum += get(map, key);
    }
    atomic_fetch_add(&found, sum);
}

uint64_t answer(int row) {
    uint64_t sum = atomic_load(&found);
    (void)row;
    for (uint64_t i = 0; i < keys; i++) {
        uint64_t key[2];
        key_at(i, key);
        sum += get(the_map, key);
    }
    return sum;
}
