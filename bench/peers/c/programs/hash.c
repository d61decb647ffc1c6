/* A hash map: examples/rust/src/bin/map_durum.rs, with snapshots of what changes alone.
 * bench/core/src/structures/hash.rs is the same algorithm. */
#include "../numbers.h"

struct hash_entry {
    uint64_t key;
    uint64_t value;
    TOID(struct hash_entry) next;
};

typedef TOID(struct hash_entry) entry_id;

struct hash_chains {
    entry_id heads[1];
};

struct hash_root {
    TOID(struct hash_chains) chains;
    uint64_t chain_count;
    uint64_t length;
};

static size_t chain_of(uint64_t key, uint64_t chain_count) {
    return (key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % chain_count;
}

/* The link that leads to the entry with a key, or the end of its chain. There are chains. */
static entry_id *link_to(struct hash_root *root, uint64_t key) {
    entry_id *link = &D_RW(root->chains)->heads[chain_of(key, root->chain_count)];
    while (!TOID_IS_NULL(*link) && D_RO(*link)->key != key)
        link = &D_RW(*link)->next;
    return link;
}

/* Makes room for twice as many, and puts every entry into its new chain. */
static void grow(struct hash_root *root) {
    uint64_t chain_count = root->chain_count == 0 ? 8 : 2 * root->chain_count;
    TOID(struct hash_chains)
    chains = TX_ZALLOC(struct hash_chains, chain_count * sizeof(entry_id));
    for (uint64_t chain = 0; chain < root->chain_count; chain++) {
        entry_id entry = D_RO(root->chains)->heads[chain];
        while (!TOID_IS_NULL(entry)) {
            entry_id rest = D_RO(entry)->next;
            entry_id *head = &D_RW(chains)->heads[chain_of(D_RO(entry)->key, chain_count)];
            TX_SET(entry, next, *head);
            *head = entry;
            entry = rest;
        }
    }
    if (!TOID_IS_NULL(root->chains))
        TX_FREE(root->chains);
    TX_ADD_DIRECT(root);
    root->chains = chains;
    root->chain_count = chain_count;
}

static void hash_insert(void *at, uint64_t key, uint64_t value) {
    struct hash_root *root = at;
    if (root->chain_count != 0) {
        entry_id known = *link_to(root, key);
        if (!TOID_IS_NULL(known)) {
            TX_SET(known, value, value);
            return;
        }
    }
    if (root->length >= root->chain_count)
        grow(root);
    entry_id *head = &D_RW(root->chains)->heads[chain_of(key, root->chain_count)];
    entry_id entry = TX_NEW(struct hash_entry);
    D_RW(entry)->key = key;
    D_RW(entry)->value = value;
    D_RW(entry)->next = *head;
    TX_ADD_DIRECT(head);
    *head = entry;
    TX_SET_DIRECT(root, length, root->length + 1);
}

static bool hash_remove(void *at, uint64_t key) {
    struct hash_root *root = at;
    if (root->chain_count == 0)
        return false;
    entry_id *link = link_to(root, key);
    entry_id entry = *link;
    if (TOID_IS_NULL(entry))
        return false;
    TX_ADD_DIRECT(link);
    *link = D_RO(entry)->next;
    TX_SET_DIRECT(root, length, root->length - 1);
    TX_FREE(entry);
    return true;
}

static const uint64_t *hash_find(const void *at, uint64_t key) {
    const struct hash_root *root = at;
    if (root->chain_count == 0)
        return NULL;
    entry_id entry = D_RO(root->chains)->heads[chain_of(key, root->chain_count)];
    while (!TOID_IS_NULL(entry)) {
        const struct hash_entry *seen = D_RO(entry);
        if (seen->key == key)
            return &seen->value;
        entry = seen->next;
    }
    return NULL;
}

static void hash_walk(const void *at, struct numbers_walk *walk) {
    const struct hash_root *root = at;
    for (uint64_t chain = 0; chain < root->chain_count; chain++) {
        entry_id entry = D_RO(root->chains)->heads[chain];
        while (!TOID_IS_NULL(entry)) {
            numbers_visit(walk, D_RO(entry)->key, D_RO(entry)->value);
            entry = D_RO(entry)->next;
        }
    }
}

const struct numbers_map numbers_hash = {
    sizeof(struct hash_root), hash_insert, hash_remove, hash_find, hash_walk,
};
