#include "pool.h"

/* 100 bytes, derived from a 64-bit seed. bench/core/src/inputs.rs has the same two functions. */
#define VALUE_WORDS 25

struct value {
    uint32_t words[VALUE_WORDS];
};

static inline struct value value_of(uint64_t seed) {
    struct value value;
    for (uint32_t i = 0; i < VALUE_WORDS; i++)
        value.words[i] = (uint32_t)seed + (uint32_t)(seed >> 32) + i * UINT32_C(0x9e3779b9);
    return value;
}

static inline uint64_t digest(const struct value *value) {
    uint64_t sum = 0;
    for (size_t i = 0; i < VALUE_WORDS; i++)
        sum += value->words[i];
    return sum;
}

struct map_node {
    uint64_t key;
    TOID(struct map_node) next;
    struct value value;
};

struct map_buckets {
    TOID(struct map_node) heads[1];
};

struct map_root {
    TOID(struct map_buckets) buckets;
    uint64_t bucket_bits;
};

struct peer_map {
    struct pool pool;
    struct map_root *root;
};

static int make_buckets(struct peer_map *map, unsigned bucket_bits) {
    int result = 0;
    TX_BEGIN(map->pool.pop) {
        size_t size = sizeof(TOID(struct map_node)) << bucket_bits;
        TX_ADD_DIRECT(map->root);
        map->root->bucket_bits = bucket_bits;
        map->root->buckets = TX_ZALLOC(struct map_buckets, size);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

struct peer_map *peer_map_open(const char *path, size_t pool_size, unsigned bucket_bits) {
    struct peer_map *map = calloc(1, sizeof(*map));
    if (map == NULL || pool_create(&map->pool, path, pool_size) != 0) {
        free(map);
        return NULL;
    }
    map->root = pmemobj_direct(pmemobj_root(map->pool.pop, sizeof(struct map_root)));
    if (map->root == NULL || make_buckets(map, bucket_bits) != 0) {
        peer_map_close(map);
        return NULL;
    }
    return map;
}

void peer_map_close(struct peer_map *map) {
    if (map != NULL)
        pool_remove(&map->pool);
    free(map);
}

static size_t bucket_of(const struct map_root *root, uint64_t key) {
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - root->bucket_bits);
}

static int insert(struct peer_map *map, const struct peer_op *entry) {
    int result = 0;
    TX_BEGIN(map->pool.pop) {
        struct map_buckets *buckets = D_RW(map->root->buckets);
        TOID(struct map_node) *head = &buckets->heads[bucket_of(map->root, entry->key)];
        TOID(struct map_node) node = TX_NEW(struct map_node);
        D_RW(node)->key = entry->key;
        D_RW(node)->value = value_of(entry->value);
        D_RW(node)->next = *head;
        TX_ADD_DIRECT(head);
        *head = node;
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

static int update(struct peer_map *map, TOID(struct map_node) node, uint64_t seed) {
    int result = 0;
    TX_BEGIN(map->pool.pop) {
        TX_SET(node, value, value_of(seed));
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_map_load(struct peer_map *map, const struct peer_op *entries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (insert(map, &entries[i]) != 0)
            return -1;
    }
    return 0;
}

int peer_map_run(struct peer_map *map, const struct peer_op *ops, size_t count, uint64_t *sum) {
    struct map_root *root = map->root;
    uint64_t read = 0;
    for (size_t i = 0; i < count; i++) {
        TOID(struct map_node) node = D_RO(root->buckets)->heads[bucket_of(root, ops[i].key)];
        while (!TOID_IS_NULL(node) && D_RO(node)->key != ops[i].key)
            node = D_RO(node)->next;
        if (TOID_IS_NULL(node)) {
            /* A read of a key that is not there makes the sum wrong, and the harness says so. */
            if (ops[i].value != 0 && insert(map, &ops[i]) != 0)
                return -1;
            continue;
        }
        if (ops[i].value == 0)
            read += digest(&D_RO(node)->value);
        else if (update(map, node, ops[i].value) != 0)
            return -1;
    }
    *sum += read;
    return 0;
}

struct peer_walk peer_map_walk(struct peer_map *map) {
    struct peer_walk walk = {0, 0, 1};
    size_t buckets = (size_t)1 << map->root->bucket_bits;
    for (size_t bucket = 0; bucket < buckets; bucket++) {
        TOID(struct map_node) node = D_RO(map->root->buckets)->heads[bucket];
        while (!TOID_IS_NULL(node)) {
            walk.count++;
            walk.sum += D_RO(node)->key ^ digest(&D_RO(node)->value);
            node = D_RO(node)->next;
        }
    }
    return walk;
}
