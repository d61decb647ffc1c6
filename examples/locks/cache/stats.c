#include "stats.h"

#include <pthread.h>
#include <string.h>

#define STATS_NAME(name) #name,
const char *const stats_names[STATS_COUNT] = {STATS_COUNTERS(STATS_NAME)};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t counters[STATS_COUNT];

void stats_add(enum counter counter, uint64_t by) {
    pthread_mutex_lock(&lock);
    counters[counter] += by;
    pthread_mutex_unlock(&lock);
}

void stats_subtract(enum counter counter, uint64_t by) {
    pthread_mutex_lock(&lock);
    counters[counter] -= by;
    pthread_mutex_unlock(&lock);
}

void stats_linked(size_t item_size) {
    pthread_mutex_lock(&lock);
    counters[STATS_curr_items]++;
    counters[STATS_total_items]++;
    counters[STATS_bytes] += item_size;
    pthread_mutex_unlock(&lock);
}

void stats_unlinked(size_t item_size) {
    pthread_mutex_lock(&lock);
    counters[STATS_curr_items]--;
    counters[STATS_bytes] -= item_size;
    pthread_mutex_unlock(&lock);
}

void stats_reset(void) {
    pthread_mutex_lock(&lock);
    uint64_t connections = counters[STATS_curr_connections];
    uint64_t items = counters[STATS_curr_items];
    uint64_t bytes = counters[STATS_bytes];
    memset(counters, 0, sizeof counters);
    counters[STATS_curr_connections] = connections;
    counters[STATS_curr_items] = items;
    counters[STATS_bytes] = bytes;
    pthread_mutex_unlock(&lock);
}

void stats_read(uint64_t values[STATS_COUNT]) {
    pthread_mutex_lock(&lock);
    memcpy(values, counters, sizeof counters);
    pthread_mutex_unlock(&lock);
}
