/* A hash map with a fixed number of buckets, each with a lock of its own. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAP_BUCKETS = 256 };

struct map_node;

struct map_bucket {
    pthread_mutex_t lock;
    struct map_node *first;
};

struct map {
    struct map_bucket buckets[MAP_BUCKETS];
};

void map_begin(struct map *map);

/* Frees all that is left. Nobody else may use the map. */
void map_end(struct map *map);

/* False: there is no memory. A key that is there already gets the value. */
bool map_put(struct map *map, uint64_t key, uint64_t value);

/* False: the key is not there. */
bool map_find(struct map *map, uint64_t key, uint64_t *value);
bool map_remove(struct map *map, uint64_t key);
