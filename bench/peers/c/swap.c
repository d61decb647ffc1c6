#include "pool.h"

struct swap_root {
    uint64_t count;
    uint64_t values[];
};

struct peer_swap {
    struct pool pool;
    struct swap_root *root;
};

struct peer_swap *peer_swap_open(const char *path, size_t pool_size, size_t count) {
    struct peer_swap *swap = calloc(1, sizeof(*swap));
    if (swap == NULL || pool_create(&swap->pool, path, pool_size) != 0) {
        free(swap);
        return NULL;
    }
    PMEMoid root =
        pmemobj_root(swap->pool.pop, sizeof(struct swap_root) + count * sizeof(uint64_t));
    swap->root = pmemobj_direct(root);
    if (swap->root == NULL) {
        peer_swap_close(swap);
        return NULL;
    }
    swap->root->count = count;
    for (size_t i = 0; i < count; i++)
        swap->root->values[i] = i;
    pmemobj_persist(swap->pool.pop, swap->root,
                    sizeof(struct swap_root) + count * sizeof(uint64_t));
    return swap;
}

void peer_swap_close(struct peer_swap *swap) {
    if (swap != NULL)
        pool_remove(&swap->pool);
    free(swap);
}

const uint64_t *peer_swap_values(const struct peer_swap *swap) {
    return swap->root->values;
}

static int swap_pairs(struct peer_swap *swap, const uint32_t *pairs, size_t count) {
    int result = 0;
    TX_BEGIN(swap->pool.pop) {
        uint64_t *values = swap->root->values;
        for (size_t i = 0; i < count; i++) {
            uint64_t *left = &values[pairs[2 * i]];
            uint64_t *right = &values[pairs[2 * i + 1]];
            TX_ADD_DIRECT(left);
            TX_ADD_DIRECT(right);
            uint64_t kept = *left;
            *left = *right;
            *right = kept;
        }
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_swap_run(struct peer_swap *swap, const uint32_t *pairs, size_t count, size_t per_tx) {
    for (size_t first = 0; first + per_tx <= count; first += per_tx) {
        if (swap_pairs(swap, &pairs[2 * first], per_tx) != 0)
            return -1;
    }
    return 0;
}
