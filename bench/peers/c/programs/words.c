/*
 * The word count: examples/rust/src/bin/word_count_durum.rs. Who brings text cuts it into chunks,
 * which wait in lanes; each lane is counted by one thread, so that these do not meet.
 *
 * A queue is a list of chunks: nothing has to be moved when it grows. Texts are ASCII.
 */
#include <ctype.h>
#include <stdbool.h>

#include "../pool.h"
#include "hashes.h"
#include "programs.h"

#define LANES 16
#define CHUNK 4096

struct words_entry {
    TOID(struct words_entry) next;
    uint64_t count;
    uint64_t len;
    char word[];
};

typedef TOID(struct words_entry) entry_id;

struct words_chains {
    entry_id heads[1];
};

struct words_chunk {
    TOID(struct words_chunk) next;
    uint64_t len;
    char text[];
};

typedef TOID(struct words_chunk) chunk_id;

struct words_counts {
    TOID(struct words_chains) chains;
    uint64_t chain_count;
    uint64_t length;
    uint64_t words;
};

struct words_lane {
    PMEMmutex queue_lock;
    chunk_id first;
    chunk_id last;
    PMEMmutex in_hand_lock;
    chunk_id in_hand; /* taken from the queue, and not counted yet */
    PMEMmutex counts_lock;
    struct words_counts counts;
};

struct words_root {
    struct words_lane lanes[LANES];
    PMEMmutex read_lock;
    uint64_t read; /* bytes of the text that have come to a queue */
};

struct peer_words {
    struct pool pool;
    struct words_root *root;
};

struct peer_words *peer_words_open(const char *path, size_t pool_size) {
    struct peer_words *words = calloc(1, sizeof(*words));
    if (words == NULL || pool_create(&words->pool, path, pool_size) != 0) {
        free(words);
        return NULL;
    }
    words->root = pmemobj_direct(pmemobj_root(words->pool.pop, sizeof(struct words_root)));
    if (words->root == NULL) {
        peer_words_close(words);
        return NULL;
    }
    return words;
}

void peer_words_close(struct peer_words *words) {
    if (words != NULL)
        pool_remove(&words->pool);
    free(words);
}

static entry_id *head_of(struct words_counts *counts, const char *word, size_t len) {
    return &D_RW(counts->chains)->heads[hash_of(word, len) % counts->chain_count];
}

static void grow(struct words_counts *counts) {
    struct words_counts old = *counts;
    uint64_t chain_count = old.chain_count == 0 ? 64 : 2 * old.chain_count;
    counts->chain_count = chain_count;
    counts->chains = TX_ZALLOC(struct words_chains, chain_count * sizeof(entry_id));
    for (uint64_t chain = 0; chain < old.chain_count; chain++) {
        entry_id entry = D_RO(old.chains)->heads[chain];
        while (!TOID_IS_NULL(entry)) {
            entry_id rest = D_RO(entry)->next;
            entry_id *head = head_of(counts, D_RO(entry)->word, D_RO(entry)->len);
            TX_SET(entry, next, *head);
            *head = entry;
            entry = rest;
        }
    }
    if (!TOID_IS_NULL(old.chains))
        TX_FREE(old.chains);
}

/* Counts a word. The counts themselves are snapshotted. */
static void add_word(struct words_counts *counts, const char *word, size_t len) {
    counts->words++;
    if (counts->length >= counts->chain_count)
        grow(counts);
    entry_id *head = head_of(counts, word, len);
    for (entry_id known = *head; !TOID_IS_NULL(known); known = D_RO(known)->next) {
        if (D_RO(known)->len == len && memcmp(D_RO(known)->word, word, len) == 0) {
            TX_SET(known, count, D_RO(known)->count + 1);
            return;
        }
    }
    entry_id entry = TX_ALLOC(struct words_entry, sizeof(struct words_entry) + len);
    struct words_entry *fresh = D_RW(entry);
    fresh->next = *head;
    fresh->count = 1;
    fresh->len = len;
    memcpy(fresh->word, word, len);
    TX_ADD_DIRECT(head);
    *head = entry;
    counts->length++;
}

static void add_words(struct words_counts *counts, const struct words_chunk *chunk) {
    size_t at = 0;
    while (at < chunk->len) {
        size_t begin = at;
        while (at < chunk->len && isalnum((unsigned char)chunk->text[at]))
            at++;
        if (at > begin)
            add_word(counts, &chunk->text[begin], at - begin);
        else
            at++;
    }
}

/* Takes a chunk in hand, if there is one: whether there is goes to *has_chunk. */
static int take(struct peer_words *words, struct words_lane *lane, bool *has_chunk) {
    int result = 0;
    TX_BEGIN_PARAM(words->pool.pop, TX_PARAM_MUTEX, &lane->in_hand_lock, TX_PARAM_MUTEX,
                   &lane->queue_lock, TX_PARAM_NONE) {
        if (TOID_IS_NULL(lane->in_hand) && !TOID_IS_NULL(lane->first)) {
            TX_SET_DIRECT(lane, in_hand, lane->first);
            pmemobj_tx_add_range_direct(&lane->first, sizeof(lane->first) + sizeof(lane->last));
            lane->first = D_RO(lane->in_hand)->next;
            if (TOID_IS_NULL(lane->first))
                lane->last = lane->first;
        }
        *has_chunk = !TOID_IS_NULL(lane->in_hand);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

/* Counts the chunk in hand. */
static int count_chunk(struct peer_words *words, struct words_lane *lane) {
    int result = 0;
    TX_BEGIN_PARAM(words->pool.pop, TX_PARAM_MUTEX, &lane->in_hand_lock, TX_PARAM_MUTEX,
                   &lane->counts_lock, TX_PARAM_NONE) {
        chunk_id chunk = lane->in_hand;
        TX_SET_DIRECT(lane, in_hand, TOID_NULL(struct words_chunk));
        TX_ADD_FIELD_DIRECT(lane, counts);
        add_words(&lane->counts, D_RO(chunk));
        TX_FREE(chunk);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

int peer_words_count(struct peer_words *words, size_t thread, size_t threads) {
    bool was_idle = false;
    while (!was_idle) {
        was_idle = true;
        for (size_t lane = thread; lane < LANES; lane += threads) {
            bool has_chunk = false;
            if (take(words, &words->root->lanes[lane], &has_chunk) != 0)
                return -1;
            if (has_chunk && count_chunk(words, &words->root->lanes[lane]) != 0)
                return -1;
            was_idle = was_idle && !has_chunk;
        }
    }
    return 0;
}

static int bring(struct peer_words *words, struct words_lane *lane, const char *text, size_t len) {
    int result = 0;
    TX_BEGIN_PARAM(words->pool.pop, TX_PARAM_MUTEX, &words->root->read_lock, TX_PARAM_MUTEX,
                   &lane->queue_lock, TX_PARAM_NONE) {
        chunk_id chunk = TX_ALLOC(struct words_chunk, sizeof(struct words_chunk) + len);
        D_RW(chunk)->next = TOID_NULL(struct words_chunk);
        D_RW(chunk)->len = len;
        memcpy(D_RW(chunk)->text, text, len);
        if (TOID_IS_NULL(lane->last)) {
            pmemobj_tx_add_range_direct(&lane->first, sizeof(lane->first) + sizeof(lane->last));
            lane->first = chunk;
            lane->last = chunk;
        } else {
            TX_SET(lane->last, next, chunk);
            TX_SET_DIRECT(lane, last, chunk);
        }
        TX_SET_DIRECT(words->root, read, words->root->read + len);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    return result;
}

/* The length of the first chunk of a text: words stay whole. */
static size_t chunk_len(const char *text, size_t len) {
    size_t end = CHUNK;
    while (end < len && !isspace((unsigned char)text[end]))
        end++;
    return end < len ? end : len;
}

int peer_words_bring(struct peer_words *words, const char *text, size_t len) {
    size_t lane = 0;
    while (words->root->read < len) {
        const char *rest = text + words->root->read;
        size_t chunk = chunk_len(rest, len - words->root->read);
        if (bring(words, &words->root->lanes[lane % LANES], rest, chunk) != 0)
            return -1;
        lane++;
    }
    return 0;
}

struct peer_walk peer_words_walk(struct peer_words *words) {
    struct peer_walk walk = {0, 0, 1};
    for (size_t lane = 0; lane < LANES; lane++) {
        const struct words_counts *counts = &words->root->lanes[lane].counts;
        for (uint64_t chain = 0; chain < counts->chain_count; chain++) {
            entry_id entry = D_RO(counts->chains)->heads[chain];
            while (!TOID_IS_NULL(entry)) {
                const struct words_entry *seen = D_RO(entry);
                walk.count += seen->count;
                walk.sum += seen->count * hash_of(seen->word, seen->len);
                entry = seen->next;
            }
        }
    }
    return walk;
}
