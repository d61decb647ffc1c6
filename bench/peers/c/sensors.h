/*
 * The network of sensors on libpmemobj: what nodes have found is copied to a larger pool, one
 * result after the other. Rules of peer.h hold, but for the files of results: they stay.
 */
#ifndef DURUM_BENCH_SENSORS_H
#define DURUM_BENCH_SENSORS_H

#include "peer.h"

struct peer_network;
struct peer_result;

/* Makes a pool with the structure that nodes get copies of: so many variables. */
int peer_sensors_begin(const char *path, size_t pool_size, uint64_t variables);
/* A node's work on its copy, in one transaction for each round. */
int peer_sensors_work(const char *path, uint64_t node, uint64_t rounds, uint64_t changes);

/* The pool in which everything comes together. */
struct peer_network *peer_network_open(const char *path, size_t pool_size);
void peer_network_close(struct peer_network *network);

/* A node's pool. One at a time: copies of a pool have one identity. */
struct peer_result *peer_result_open(const char *path);
void peer_result_close(struct peer_result *result);
/* Copies what is in it to the network, before what is there, in one transaction. */
int peer_network_take_in(struct peer_network *network, const struct peer_result *result);
/* The sum of the values of all variables. */
uint64_t peer_network_sum(const struct peer_network *network);
/* The walk over all variables: `sum` is a digest of them in their order, `sorted` whether each is
 * found in the tree of its node. */
struct peer_walk peer_network_walk(const struct peer_network *network);

#endif
