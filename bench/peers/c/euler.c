/* For sincos. */
#define _GNU_SOURCE
#include <math.h>

#include "pool.h"

struct array_root {
    uint64_t count;
    double numbers[];
};

struct peer_array {
    struct pool pool;
    struct array_root *root;
};

struct peer_array *peer_array_open(const char *path, size_t pool_size, size_t count) {
    struct peer_array *array = calloc(1, sizeof(*array));
    if (array == NULL || pool_create(&array->pool, path, pool_size) != 0) {
        free(array);
        return NULL;
    }
    size_t size = sizeof(struct array_root) + count * sizeof(double);
    array->root = pmemobj_direct(pmemobj_root(array->pool.pop, size));
    if (array->root == NULL) {
        peer_array_close(array);
        return NULL;
    }
    array->root->count = count;
    for (size_t i = 0; i < count; i++)
        array->root->numbers[i] = (double)i;
    pmemobj_persist(array->pool.pop, array->root, size);
    return array;
}

void peer_array_close(struct peer_array *array) {
    if (array != NULL)
        pool_remove(&array->pool);
    free(array);
}

const double *peer_array_numbers(const struct peer_array *array) {
    return array->root->numbers;
}

static int euler(struct peer_array *array, double *numbers, size_t count) {
    int result = 0;
    TX_BEGIN(array->pool.pop) {
        pmemobj_tx_add_range_direct(numbers, count * sizeof(double));
        for (size_t i = 0; i < count; i++) {
            double sine, cosine;
            sincos(numbers[i], &sine, &cosine);
            numbers[i] = cosine + sine;
        }
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_array_euler(struct peer_array *array, size_t first, size_t end, size_t per_tx) {
    for (; first < end; first += per_tx) {
        size_t count = end - first < per_tx ? end - first : per_tx;
        if (euler(array, &array->root->numbers[first], count) != 0)
            return -1;
    }
    return 0;
}
