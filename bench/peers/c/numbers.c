#include "numbers.h"

struct peer_numbers {
    struct pool pool;
    enum peer_numbers_kind kind;
    const struct numbers_map *map;
    void *root;
};

struct numbers_walk {
    struct peer_walk result;
    enum peer_numbers_kind kind;
    uint64_t last;
};

static const struct numbers_map *const maps[] = {
    [PEER_NUMBERS_BST] = &numbers_bst,           [PEER_NUMBERS_HASH] = &numbers_hash,
    [PEER_NUMBERS_BPLUS] = &numbers_bplus,       [PEER_NUMBERS_SORTED] = &numbers_sorted,
    [PEER_NUMBERS_REDBLACK] = &numbers_redblack, [PEER_NUMBERS_FIXED] = &numbers_fixed,
};

struct peer_numbers *peer_numbers_open(const char *path, size_t pool_size,
                                       enum peer_numbers_kind kind) {
    struct peer_numbers *numbers = calloc(1, sizeof(*numbers));
    if (numbers == NULL || pool_create(&numbers->pool, path, pool_size) != 0) {
        free(numbers);
        return NULL;
    }
    numbers->kind = kind;
    numbers->map = maps[kind];
    numbers->root = pmemobj_direct(pmemobj_root(numbers->pool.pop, numbers->map->root_size));
    if (numbers->root == NULL) {
        peer_numbers_close(numbers);
        return NULL;
    }
    return numbers;
}

void peer_numbers_close(struct peer_numbers *numbers) {
    if (numbers != NULL)
        pool_remove(&numbers->pool);
    free(numbers);
}

static int tx_insert(struct peer_numbers *numbers, const struct peer_op *entry) {
    int result = 0;
    TX_BEGIN(numbers->pool.pop) {
        numbers->map->insert(numbers->root, entry->key, entry->value);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

static int tx_remove(struct peer_numbers *numbers, uint64_t key, uint64_t *found) {
    int result = 0;
    TX_BEGIN(numbers->pool.pop) {
        *found += numbers->map->remove(numbers->root, key);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_numbers_insert(struct peer_numbers *numbers, const struct peer_op *entries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (tx_insert(numbers, &entries[i]) != 0)
            return -1;
    }
    return 0;
}

uint64_t peer_numbers_find(struct peer_numbers *numbers, const uint64_t *keys, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t *value = numbers->map->find(numbers->root, keys[i]);
        sum += value != NULL ? *value : 0;
    }
    return sum;
}

int peer_numbers_remove(struct peer_numbers *numbers, const uint64_t *keys, size_t count,
                        uint64_t *found) {
    *found = 0;
    for (size_t i = 0; i < count; i++) {
        if (tx_remove(numbers, keys[i], found) != 0)
            return -1;
    }
    return 0;
}

static bool ascends(const struct numbers_walk *walk, uint64_t key) {
    switch (walk->kind) {
    case PEER_NUMBERS_BST:
        return (int64_t)walk->last < (int64_t)key;
    case PEER_NUMBERS_HASH:
    case PEER_NUMBERS_FIXED:
        return true;
    default:
        return walk->last < key;
    }
}

void numbers_visit(struct numbers_walk *walk, uint64_t key, uint64_t value) {
    if (walk->result.count != 0 && !ascends(walk, key))
        walk->result.sorted = 0;
    walk->last = key;
    walk->result.count++;
    walk->result.sum += key ^ value;
}

void numbers_unsound(struct numbers_walk *walk) {
    walk->result.sorted = 0;
}

struct peer_walk peer_numbers_walk(struct peer_numbers *numbers) {
    struct numbers_walk walk = {{0, 0, 1}, numbers->kind, 0};
    numbers->map->walk(numbers->root, &walk);
    return walk.result;
}
