/* What all workloads share: a fresh pool file, and typed object identifiers. */
#ifndef DURUM_BENCH_POOL_H
#define DURUM_BENCH_POOL_H

#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

struct cells_root;
struct cell_object;
struct ring_node;
struct swap_root;
struct array_root;
struct list_root;
struct list_node;
struct tree_root;
struct tree_node;
struct map_root;
struct map_node;
struct map_buckets;
struct stack_root;
struct stack_node;
struct bst_root;
struct bst_node;
struct hash_root;
struct hash_entry;
struct hash_chains;
struct bplus_root;
struct bplus_node;
struct store_root;
struct store_text;
struct store_pair;
struct store_buckets;
struct words_root;
struct words_entry;
struct words_chains;
struct words_chunk;
struct sorted_root;
struct sorted_node;
struct redblack_root;
struct redblack_node;
struct fixed_root;
struct fixed_node;
struct sensor_variable;
struct sensor_state;

POBJ_LAYOUT_BEGIN(durum_bench);
POBJ_LAYOUT_ROOT(durum_bench, struct cells_root);
POBJ_LAYOUT_TOID(durum_bench, struct cell_object);
POBJ_LAYOUT_TOID(durum_bench, struct ring_node);
POBJ_LAYOUT_TOID(durum_bench, struct swap_root);
POBJ_LAYOUT_TOID(durum_bench, struct array_root);
POBJ_LAYOUT_TOID(durum_bench, struct list_root);
POBJ_LAYOUT_TOID(durum_bench, struct list_node);
POBJ_LAYOUT_TOID(durum_bench, struct tree_root);
POBJ_LAYOUT_TOID(durum_bench, struct tree_node);
POBJ_LAYOUT_TOID(durum_bench, struct map_root);
POBJ_LAYOUT_TOID(durum_bench, struct map_node);
POBJ_LAYOUT_TOID(durum_bench, struct map_buckets);
POBJ_LAYOUT_TOID(durum_bench, struct stack_root);
POBJ_LAYOUT_TOID(durum_bench, struct stack_node);
POBJ_LAYOUT_TOID(durum_bench, struct bst_root);
POBJ_LAYOUT_TOID(durum_bench, struct bst_node);
POBJ_LAYOUT_TOID(durum_bench, struct hash_root);
POBJ_LAYOUT_TOID(durum_bench, struct hash_entry);
POBJ_LAYOUT_TOID(durum_bench, struct hash_chains);
POBJ_LAYOUT_TOID(durum_bench, struct bplus_root);
POBJ_LAYOUT_TOID(durum_bench, struct bplus_node);
POBJ_LAYOUT_TOID(durum_bench, struct store_root);
POBJ_LAYOUT_TOID(durum_bench, struct store_text);
POBJ_LAYOUT_TOID(durum_bench, struct store_pair);
POBJ_LAYOUT_TOID(durum_bench, struct store_buckets);
POBJ_LAYOUT_TOID(durum_bench, struct words_root);
POBJ_LAYOUT_TOID(durum_bench, struct words_entry);
POBJ_LAYOUT_TOID(durum_bench, struct words_chains);
POBJ_LAYOUT_TOID(durum_bench, struct words_chunk);
POBJ_LAYOUT_TOID(durum_bench, struct sorted_root);
POBJ_LAYOUT_TOID(durum_bench, struct sorted_node);
POBJ_LAYOUT_TOID(durum_bench, struct redblack_root);
POBJ_LAYOUT_TOID(durum_bench, struct redblack_node);
POBJ_LAYOUT_TOID(durum_bench, struct fixed_root);
POBJ_LAYOUT_TOID(durum_bench, struct fixed_node);
POBJ_LAYOUT_TOID(durum_bench, struct sensor_variable);
POBJ_LAYOUT_TOID(durum_bench, struct sensor_state);
POBJ_LAYOUT_END(durum_bench);

struct pool {
    PMEMobjpool *pop;
    char *path;
};

/* Creates the file (an older one of that name is removed); 0 or -1. */
int pool_create(struct pool *pool, const char *path, size_t size);
/* Closes and removes the file. */
void pool_remove(struct pool *pool);

#endif
