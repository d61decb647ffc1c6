#include "pool.h"

#define PAGE 4096

/* Exactly one line, so that the ring has the same footprint however wide a pointer is. */
struct ring_node {
    TOID(struct ring_node) next;
    uint64_t number;
    uint64_t unused[5];
};

struct cells_root {
    PMEMoid area;
    PMEMoid ring;
    TOID(struct ring_node) first;
};

struct peer_cells {
    struct pool pool;
    struct cells_root *root;
    uint8_t *area;
    size_t area_size;
    PMEMoid *objects; /* volatile: the transactions under test store no pointer */
    size_t objects_max;
    size_t objects_begin;
    size_t objects_end;
    size_t object_len;
};

static int cells_build(struct peer_cells *cells, const uint32_t *next, size_t nodes) {
    PMEMobjpool *pop = cells->pool.pop;
    struct cells_root *root = cells->root;
    if (pmemobj_zalloc(pop, &root->area, cells->area_size + 2 * PAGE, 0) != 0)
        return -1;
    /* A line behind a page boundary, as on the other sides (bench/core/src/side.rs tells why). */
    uintptr_t area = (uintptr_t)pmemobj_direct(root->area);
    cells->area = (uint8_t *)(((area + PAGE - 1) & ~(uintptr_t)(PAGE - 1)) + 64);

    if (pmemobj_zalloc(pop, &root->ring, (nodes + 1) * sizeof(struct ring_node), 0) != 0)
        return -1;
    uint64_t begin = (root->ring.off + 63) & ~UINT64_C(63);
    root->first = (TOID(struct ring_node)){{root->ring.pool_uuid_lo, begin}};
    struct ring_node *ring = D_RW(root->first);
    for (size_t i = 0; i < nodes; i++) {
        ring[i].number = i;
        ring[i].next = root->first;
        ring[i].next.oid.off = begin + next[i] * sizeof(struct ring_node);
    }
    pmemobj_persist(pop, ring, nodes * sizeof(struct ring_node));
    pmemobj_persist(pop, root, sizeof(*root));
    return 0;
}

struct peer_cells *peer_cells_open(const char *path, size_t pool_size, size_t area_size,
                                   size_t objects_max, const uint32_t *next, size_t nodes) {
    struct peer_cells *cells = calloc(1, sizeof(*cells));
    if (cells == NULL || pool_create(&cells->pool, path, pool_size) != 0) {
        free(cells);
        return NULL;
    }
    cells->area_size = area_size;
    cells->objects_max = objects_max;
    cells->objects = calloc(objects_max, sizeof(PMEMoid));
    cells->root = pmemobj_direct(pmemobj_root(cells->pool.pop, sizeof(struct cells_root)));
    if (cells->objects == NULL || cells->root == NULL || cells_build(cells, next, nodes) != 0) {
        peer_cells_close(cells);
        return NULL;
    }
    return cells;
}

void peer_cells_close(struct peer_cells *cells) {
    if (cells != NULL) {
        pool_remove(&cells->pool);
        free(cells->objects);
    }
    free(cells);
}

const uint8_t *peer_cells_area(const struct peer_cells *cells) {
    return cells->area;
}

int peer_cells_floor(struct peer_cells *cells, size_t stride, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t *cell = (uint64_t *)(cells->area + ((i * stride) & (cells->area_size - 1)));
        *cell = i;
        pmemobj_persist(cells->pool.pop, cell, sizeof(*cell));
    }
    return 0;
}

/* Each transaction has a function of its own: TX_BEGIN is a setjmp, which loop variables would not
 * survive. */
static int tx_empty(struct peer_cells *cells) {
    int result = 0;
    TX_BEGIN(cells->pool.pop) {}
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_cells_tx_empty(struct peer_cells *cells, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (tx_empty(cells) != 0)
            return -1;
    }
    return 0;
}

static inline void write_image(uint8_t *target, const uint8_t *image, uint64_t first_word,
                               size_t len) {
    memcpy(target, &first_word, sizeof(first_word));
    if (len > sizeof(first_word))
        memcpy(target + sizeof(first_word), image + sizeof(first_word), len - sizeof(first_word));
}

static int tx_add(struct peer_cells *cells, uint8_t *target, size_t len, const uint8_t *image,
                  uint64_t first_word) {
    int result = 0;
    TX_BEGIN(cells->pool.pop) {
        pmemobj_tx_add_range_direct(target, len);
        write_image(target, image, first_word, len);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_cells_add(struct peer_cells *cells, size_t len, size_t stride, const uint8_t *image,
                   size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint8_t *target = cells->area + ((i * stride) & (cells->area_size - 1));
        if (tx_add(cells, target, len, image, i) != 0)
            return -1;
    }
    return 0;
}

static int tx_alloc(struct peer_cells *cells, PMEMoid *object, size_t len, const uint8_t *image,
                    uint64_t first_word) {
    int result = 0;
    TX_BEGIN(cells->pool.pop) {
        *object = pmemobj_tx_alloc(len, TOID_TYPE_NUM(struct cell_object));
        write_image(pmemobj_direct(*object), image, first_word, len);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_cells_alloc(struct peer_cells *cells, size_t len, const uint8_t *image, size_t count) {
    if (cells->objects_end + count > cells->objects_max)
        return -1;
    cells->object_len = len;
    for (size_t i = 0; i < count; i++) {
        if (tx_alloc(cells, &cells->objects[cells->objects_end], len, image, i) != 0)
            return -1;
        cells->objects_end++;
    }
    return 0;
}

uint64_t peer_cells_objects_sum(const struct peer_cells *cells) {
    uint64_t sum = 0;
    for (size_t i = cells->objects_begin; i < cells->objects_end; i++) {
        const uint8_t *object = pmemobj_direct(cells->objects[i]);
        uint64_t first, last;
        memcpy(&first, object, sizeof(first));
        memcpy(&last, object + cells->object_len - sizeof(last), sizeof(last));
        sum += first ^ last << 32;
    }
    return sum;
}

static int tx_free(struct peer_cells *cells, PMEMoid object) {
    int result = 0;
    TX_BEGIN(cells->pool.pop) {
        pmemobj_tx_free(object);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_cells_free(struct peer_cells *cells, size_t count) {
    if (cells->objects_begin + count > cells->objects_end)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (tx_free(cells, cells->objects[cells->objects_begin]) != 0)
            return -1;
        cells->objects_begin++;
    }
    if (cells->objects_begin == cells->objects_end) {
        cells->objects_begin = 0;
        cells->objects_end = 0;
    }
    return 0;
}

uint64_t peer_cells_deref(struct peer_cells *cells, size_t count) {
    uint64_t sum = 0;
    struct cells_root *root = cells->root;
    for (size_t i = 0; i < count; i++) {
        sum += D_RO(root->first)->number + 1;
        __asm__ volatile("" ::: "memory"); /* the pointer is read again each time */
    }
    return sum;
}

uint64_t peer_cells_chase(struct peer_cells *cells, size_t steps) {
    uint64_t sum = 0;
    TOID(struct ring_node) node = cells->root->first;
    for (size_t i = 0; i < steps; i++) {
        sum += D_RO(node)->number;
        node = D_RO(node)->next;
    }
    return sum;
}
