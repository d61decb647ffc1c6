/*
 * The benchmark rows on libpmemobj, as functions over batches.
 *
 * 1. A handle owns one pool file; close() closes and removes it.
 * 2. Functions that change the pool return 0, or -1 with the cause in peer_error().
 * 3. Everything that a function changed is durable when it returns; each operation of a batch is
 * one transaction of its own unless the comment says otherwise.
 * 4. One thread at a time.
 */
#ifndef DURUM_BENCH_PEER_H
#define DURUM_BENCH_PEER_H

#include <stddef.h>
#include <stdint.h>

/* One key-value operation: a read where `value` is 0, else an update. The map stores 100 bytes
 * derived from it. */
struct peer_op {
    uint64_t key;
    uint64_t value;
};

/* A scan of `length` entries from a key on or, where that is 0, an insertion. */
struct peer_scan {
    uint64_t key;
    uint64_t value;
    uint64_t length;
};

/* What a walk over a whole structure found. */
struct peer_walk {
    uint64_t count;
    uint64_t sum;    /* of values (list), key xor value (tree), key xor digest of the value (map) */
    uint64_t sorted; /* 1 where keys ascend strictly (structures with an order) */
};

struct peer_cells;
struct peer_swap;
struct peer_array;
struct peer_list;
struct peer_tree;
struct peer_map;
struct peer_numbers;

/* Version of the library, and the text of the last error. */
const char *peer_version(void);
const char *peer_error(void);

/*
 * Cells: an area of `area_size` bytes (a power of two, on a line boundary) for floor and add, room
 * for `objects_max` objects, and a chase ring of `nodes` 64-byte nodes in which node i points to
 * node next[i].
 */
struct peer_cells *peer_cells_open(const char *path, size_t pool_size, size_t area_size,
                                   size_t objects_max, const uint32_t *next, size_t nodes);
void peer_cells_close(struct peer_cells *cells);
/* The area itself, for checks. */
const uint8_t *peer_cells_area(const struct peer_cells *cells);
/* count stores of 8 bytes, each made durable alone, no transaction; store i goes to (i * stride)
 * mod area_size. */
int peer_cells_floor(struct peer_cells *cells, size_t stride, size_t count);
int peer_cells_tx_empty(struct peer_cells *cells, size_t count);
/* Transaction i snapshots and overwrites len bytes at (i * stride) mod area_size: the first word
 * becomes i, the other bytes those of `image`. */
int peer_cells_add(struct peer_cells *cells, size_t len, size_t stride, const uint8_t *image,
                   size_t count);
/* Transaction i allocates one object of len bytes, `image` with i as its first word. */
int peer_cells_alloc(struct peer_cells *cells, size_t len, const uint8_t *image, size_t count);
/* Sum over all allocated objects (of one length) of first word ^ last word << 32. */
uint64_t peer_cells_objects_sum(const struct peer_cells *cells);
/* Transaction i frees one object, the oldest first. */
int peer_cells_free(struct peer_cells *cells, size_t count);
/* Reads count times through one stored pointer; the sum of what it read. */
uint64_t peer_cells_deref(struct peer_cells *cells, size_t count);
/* Follows `steps` stored pointers around the ring; the sum of the numbers of the nodes it met. */
uint64_t peer_cells_chase(struct peer_cells *cells, size_t steps);

/* Swap: `count` integers, integer i starts as i. */
struct peer_swap *peer_swap_open(const char *path, size_t pool_size, size_t count);
void peer_swap_close(struct peer_swap *swap);
const uint64_t *peer_swap_values(const struct peer_swap *swap);
/* pairs holds 2 * count indices; each transaction swaps the next `per_tx` pairs. */
int peer_swap_run(struct peer_swap *swap, const uint32_t *pairs, size_t count, size_t per_tx);

/* Array: `count` floating-point numbers, number i starts as i. Threads may change parts of their
 * own at the same time. */
struct peer_array *peer_array_open(const char *path, size_t pool_size, size_t count);
void peer_array_close(struct peer_array *array);
const double *peer_array_numbers(const struct peer_array *array);
/* Replaces x by cos(x) + sin(x) from `first` up to before `end`, `per_tx` numbers in each
 * transaction.
 */
int peer_array_euler(struct peer_array *array, size_t first, size_t end, size_t per_tx);

/* List: singly linked, with head and tail. */
struct peer_list *peer_list_open(const char *path, size_t pool_size);
void peer_list_close(struct peer_list *list);
int peer_list_append(struct peer_list *list, const uint64_t *values, size_t count);
struct peer_walk peer_list_sum(struct peer_list *list);
/* Pops from the head; adds what it popped to *sum. */
int peer_list_pop(struct peer_list *list, size_t count, uint64_t *sum);

/* Tree: a B-tree of order 8. */
struct peer_tree *peer_tree_open(const char *path, size_t pool_size);
void peer_tree_close(struct peer_tree *tree);
int peer_tree_insert(struct peer_tree *tree, const struct peer_op *entries, size_t count);
/* Sum of the values found. */
uint64_t peer_tree_lookup(struct peer_tree *tree, const uint64_t *keys, size_t count);
/* The number of keys that were there goes to *found. */
int peer_tree_delete(struct peer_tree *tree, const uint64_t *keys, size_t count, uint64_t *found);
/* Scans and insertions; adds the values that were read to *sum. */
int peer_tree_serve(struct peer_tree *tree, const struct peer_scan *requests, size_t count,
                    uint64_t *sum);
struct peer_walk peer_tree_walk(struct peer_tree *tree);

/* Map: a chained hash map with 1 << bucket_bits buckets. */
struct peer_map *peer_map_open(const char *path, size_t pool_size, unsigned bucket_bits);
void peer_map_close(struct peer_map *map);
/* Inserts keys that are not there yet. */
int peer_map_load(struct peer_map *map, const struct peer_op *entries, size_t count);
/* Reads of keys that are there, updates, and insertions of those that are not; adds the digests of
 * the values that were read to *sum. */
int peer_map_run(struct peer_map *map, const struct peer_op *ops, size_t count, uint64_t *sum);
struct peer_walk peer_map_walk(struct peer_map *map);

/* Numbers: maps from numbers to numbers. The first three are programs of examples/rust. */
enum peer_numbers_kind {
    PEER_NUMBERS_BST,      /* a binary search tree; keys are compared as signed numbers */
    PEER_NUMBERS_HASH,     /* chains, twice as many when there are as many entries */
    PEER_NUMBERS_BPLUS,    /* a B+tree of fan-out 8 */
    PEER_NUMBERS_SORTED,   /* a singly linked list, sorted by key */
    PEER_NUMBERS_REDBLACK, /* a red-black tree */
    PEER_NUMBERS_FIXED     /* 2,048 chains, whatever the number of entries */
};
struct peer_numbers *peer_numbers_open(const char *path, size_t pool_size,
                                       enum peer_numbers_kind kind);
void peer_numbers_close(struct peer_numbers *numbers);
int peer_numbers_insert(struct peer_numbers *numbers, const struct peer_op *entries, size_t count);
/* Sum of the values found. */
uint64_t peer_numbers_find(struct peer_numbers *numbers, const uint64_t *keys, size_t count);
/* The number of keys that were there goes to *found. */
int peer_numbers_remove(struct peer_numbers *numbers, const uint64_t *keys, size_t count,
                        uint64_t *found);
struct peer_walk peer_numbers_walk(struct peer_numbers *numbers);

#endif
