/*
 * The programs of examples/rust on libpmemobj, as functions over batches, but for the maps from
 * numbers to numbers, which are in peer.h. The conventions are those of that, but that the word
 * count serves threads.
 */
#ifndef DURUM_BENCH_PROGRAMS_H
#define DURUM_BENCH_PROGRAMS_H

#include "../peer.h"

struct peer_stack;
struct peer_store;
struct peer_words;

/* Stack: the linked list, which has a head and a length. Values come and go at the head. */
struct peer_stack *peer_stack_open(const char *path, size_t pool_size);
void peer_stack_close(struct peer_stack *stack);
int peer_stack_push(struct peer_stack *stack, const uint64_t *values, size_t count);
struct peer_walk peer_stack_sum(struct peer_stack *stack);
/* Adds what it popped to *sum. */
int peer_stack_pop(struct peer_stack *stack, size_t count, uint64_t *sum);

/* Pairs of texts, one behind the other: `count` times a key and a value. Lengths are multiples of
 * 8. */
struct peer_texts {
    const char *text;
    size_t key_len;
    size_t value_len;
    size_t count;
};

/* Store: the key-value store for text. */
struct peer_store *peer_store_open(const char *path, size_t pool_size);
void peer_store_close(struct peer_store *store);
/* Puts each value under its key, whether that is there or not. */
int peer_store_put(struct peer_store *store, const struct peer_texts *texts);
/* Adds each value to the end of the one that is there. */
int peer_store_append(struct peer_store *store, const struct peer_texts *texts);
/* Sum of the words of all values found. */
uint64_t peer_store_read(struct peer_store *store, const struct peer_texts *texts);
/* The number of keys that were there goes to *found. */
int peer_store_delete(struct peer_store *store, const struct peer_texts *texts, uint64_t *found);
struct peer_walk peer_store_walk(struct peer_store *store);

/* Words: the word count. Chunks of text wait in lanes, each of which one thread counts. */
struct peer_words *peer_words_open(const char *path, size_t pool_size);
void peer_words_close(struct peer_words *words);
/* Brings a text to the lanes, a transaction for each chunk. */
int peer_words_bring(struct peer_words *words, const char *text, size_t len);
/* Counts what is in the lanes of one of several threads, two transactions for each chunk. */
int peer_words_count(struct peer_words *words, size_t thread, size_t threads);
/* Count is that of all words, sum that of hash and number of each. */
struct peer_walk peer_words_walk(struct peer_words *words);

#endif
