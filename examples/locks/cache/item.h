/* What the cache keeps under a key. Key, head and value lie behind each other, as an answer needs
 * them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
    KEY_SIZE_MAX = 250,
    HEAD_SIZE_MAX = 32, /* " 4294967295 1048576" has 19 bytes */
    LINE_END_SIZE = 2,
};

/* All fields are guarded by the cache's lock, but for the bytes: those of an item that is in the
 * table do not change as long as somebody has a reference, and those of another one belong to who
 * allocated it. */
struct item {
    struct item *newer, *older; /* in the list of its class */
    struct item *chain;         /* next one in the table's bucket */
    uint64_t cas;   /* grows with each item that is linked: also tells what came before a flush */
    time_t expires; /* 0: never */
    time_t used;    /* when it was last moved to the list's front */
    uint32_t hash;
    uint32_t flags;
    uint32_t value_size; /* without the end of the line */
    uint32_t references; /* of answers that are being sent, and of who fills it */
    uint8_t class;
    uint8_t key_size;
    uint8_t head_size;
    bool is_linked;
    char bytes[]; /* the key, " FLAGS SIZE", the value, "\r\n" */
};

static inline char *item_head(struct item *item) {
    return item->bytes + item->key_size;
}
static inline char *item_value(struct item *item) {
    return item_head(item) + item->head_size;
}

static inline size_t item_size(const struct item *item) {
    return sizeof *item + item->key_size + item->head_size + item->value_size + LINE_END_SIZE;
}
