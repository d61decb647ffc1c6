/* Sections that store much: words apart from each other, counters, rows of bytes. */
#include "kernel.h"

#define WORDS 16
#define SMALL ((size_t)64 << 10)
#define LARGE ((size_t)1 << 20)

/* A line for each. */
struct word {
    _Alignas(64) uint64_t value;
};

struct stores {
    pthread_mutex_t lock;
    struct word words[WORDS];
    struct word counters[WORDS];
    _Alignas(64) unsigned char bytes[LARGE];
};

const struct row rows[] = {
    {"stores_16", 1}, {"increments_16", 1}, {"fill_64k", 1}, {"fill_1m", 1}, {NULL, 0}};

/* What a section uses is an argument: a variable of the program is gone when the section goes on.
 */
static struct stores *the_stores;

static void store_all(struct stores *stores, uint64_t value) {
    pthread_mutex_lock(&stores->lock);
    BEGIN(&stores->lock);
    for (uint64_t i = 0; i < WORDS; i++)
        SET(stores->words[i].value, value + i);
    COMMIT();
    pthread_mutex_unlock(&stores->lock);
}

static void increment_all(struct stores *stores) {
    pthread_mutex_lock(&stores->lock);
    BEGIN(&stores->lock);
    for (int i = 0; i < WORDS; i++)
        SET(stores->counters[i].value, stores->counters[i].value + 1);
    COMMIT();
    pthread_mutex_unlock(&stores->lock);
}

static void fill(struct stores *stores, size_t size, unsigned char value) {
    pthread_mutex_lock(&stores->lock);
    BEGIN(&stores->lock);
    FILL(stores->bytes, value, size);
    COMMIT();
    pthread_mutex_unlock(&stores->lock);
}

static void reset(struct stores *stores) {
    pthread_mutex_lock(&stores->lock);
    BEGIN(&stores->lock);
    for (int i = 0; i < WORDS; i++)
        SET(stores->counters[i].value, 0);
    COMMIT();
    pthread_mutex_unlock(&stores->lock);
}

void set_up(long size) {
    (void)size;
    struct stores *stores = memory_root(sizeof *stores);
    the_stores = stores;
    pthread_mutex_init(&stores->lock, NULL);
}

void prepare(int row) {
    (void)row;
    reset(the_stores);
}

void run(int row, int thread, int threads, long operations) {
    struct stores *stores = the_stores;
    (void)thread, (void)threads;
    for (long i = 0; i < operations; i++)
        switch (row) {
        case 0:
            store_all(stores, (uint64_t)i);
            break;
        case 1:
            increment_all(stores);
            break;
        default:
            fill(stores, row == 2 ? SMALL : LARGE, (unsigned char)(i + 1));
        }
}

uint64_t answer(int row) {
    uint64_t sum = 0;
    const struct word *words = row == 0 ? the_stores->words : the_stores->counters;
    if (row < 2) {
        for (int i = 0; i < WORDS; i++)
            sum = sum * 31 + words[i].value;
        return sum;
    }
    size_t size = row == 2 ? SMALL : LARGE;
    for (size_t i = 0; i < size; i += 1021)
        sum = sum * 31 + the_stores->bytes[i];
    return sum;
}
