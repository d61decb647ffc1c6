#include "map.h"

#include <stdlib.h>

struct map_node {
    struct map_node *next;
    uint64_t key, value;
};

void map_begin(struct map *map) {
    for (int i = 0; i < MAP_BUCKETS; i++) {
        pthread_mutex_init(&map->buckets[i].lock, NULL);
        map->buckets[i].first = NULL;
    }
}

void map_end(struct map *map) {
    for (int i = 0; i < MAP_BUCKETS; i++) {
        struct map_bucket *bucket = &map->buckets[i];
        while (bucket->first) {
            struct map_node *node = bucket->first;
            bucket->first = node->next;
            free(node);
        }
        pthread_mutex_destroy(&bucket->lock);
    }
}

/* The high bits of a product depend on all bits of the key. */
static struct map_bucket *bucket_of(struct map *map, uint64_t key) {
    return &map->buckets[(key * 0x9e3779b97f4a7c15) >> 32 & (MAP_BUCKETS - 1)];
}

/* The pointer that leads to the key's node, or to which a new one is added. */
static struct map_node **place_of(struct map_bucket *bucket, uint64_t key) {
    struct map_node **place = &bucket->first;
    while (*place && (*place)->key != key)
        place = &(*place)->next;
    return place;
}

bool map_put(struct map *map, uint64_t key, uint64_t value) {
    struct map_bucket *bucket = bucket_of(map, key);
    pthread_mutex_lock(&bucket->lock);
    struct map_node **place = place_of(bucket, key);
    struct map_node *node = *place ? *place : malloc(sizeof *node);
    if (node)
        node->value = value;
    if (node && !*place) {
        node->key = key;
        node->next = NULL;
        *place = node;
    }
    pthread_mutex_unlock(&bucket->lock);
    return node != NULL;
}

bool map_find(struct map *map, uint64_t key, uint64_t *value) {
    struct map_bucket *bucket = bucket_of(map, key);
    pthread_mutex_lock(&bucket->lock);
    const struct map_node *node = *place_of(bucket, key);
    if (node)
        *value = node->value;
    pthread_mutex_unlock(&bucket->lock);
    return node != NULL;
}

bool map_remove(struct map *map, uint64_t key) {
    struct map_bucket *bucket = bucket_of(map, key);
    pthread_mutex_lock(&bucket->lock);
    struct map_node **place = place_of(bucket, key);
    struct map_node *node = *place;
    if (node)
        *place = node->next;
    pthread_mutex_unlock(&bucket->lock);
    free(node);
    return node != NULL;
}
