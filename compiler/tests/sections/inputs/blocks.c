/* Memory that sections take and free: blocks of a line, and a map with a bit for each. Records tell what was taken, and
 * what was freed until its bit is cleared, when no other section is under way. */
#include "runtime.h"

#include <string.h>

enum { WORD = 64 };

/* Nobody may take these. Known of this process only. */
static char is_busy[BLOCKS];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void change(struct thread *thread, uint16_t block, int is_set) {
    uint64_t *word = &memory->map[block / WORD], mask = 1ull << block % WORD;
    if (is_set)
        __atomic_or_fetch(word, mask, __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(word, ~mask, __ATOMIC_RELAXED);
    wrote(thread, word, sizeof *word);
}

void *take_block(struct blocks *blocks, size_t size) {
    if (size > LINE || blocks->taken_count == BLOCKS_TOLD)
        fail("more is taken than a record tells");
    pthread_mutex_lock(&turn);
    int block = 0;
    while (block < BLOCKS && is_busy[block])
        block++;
    if (block == BLOCKS)
        fail("the heap is full");
    is_busy[block] = 1;
    pthread_mutex_unlock(&turn);
    blocks->taken[blocks->taken_count++] = block;
    return memory->heap + block * LINE;
}

void free_block(struct blocks *blocks, const void *object) {
    if (blocks->freed_count == BLOCKS_TOLD)
        fail("more is freed than a record tells");
    blocks->freed[blocks->freed_count++] = ((const char *)object - memory->heap) / LINE;
}

void tell_blocks(const struct blocks *blocks, struct bank *bank) {
    bank->taken_count = strcmp(fault, "taken") ? blocks->taken_count : 0;
    bank->freed_count = strcmp(fault, "freed") ? blocks->freed_count : 0;
    memcpy(bank->taken, blocks->taken, sizeof bank->taken);
    memcpy(bank->freed, blocks->freed, sizeof bank->freed);
}

void set_taken(struct thread *thread, struct blocks *blocks) {
    for (int i = 0; i < blocks->taken_count; i++)
        change(thread, blocks->taken[i], 1);
    blocks->taken_count = 0;
}

void clear_freed(struct thread *thread, struct blocks *blocks) {
    for (int i = 0; i < blocks->ended_count; i++)
        change(thread, blocks->freed[i], 0);
    memcpy(blocks->cleared, blocks->freed, sizeof blocks->cleared);
    blocks->cleared_count = blocks->ended_count;
    blocks->freed_count -= blocks->ended_count;
    memmove(blocks->freed, blocks->freed + blocks->ended_count, blocks->freed_count * sizeof *blocks->freed);
    blocks->ended_count = 0;
}

void end_blocks(struct blocks *blocks) {
    for (int i = 0; i < blocks->cleared_count; i++)
        is_busy[blocks->cleared[i]] = 0;
    blocks->cleared_count = 0;
    blocks->ended_count = blocks->freed_count;
}

/* In recovery each step is there for good at once. */
static void change_for_good(uint16_t block, int is_set) {
    change(NULL, block, is_set);
    image->map[block / WORD] = memory->map[block / WORD];
}

void recover_blocks(const struct bank *bank, struct blocks *blocks) {
    for (uint32_t i = 0; i < bank->taken_count; i++)
        change_for_good(bank->taken[i], 1);
    for (uint32_t i = 0; i < bank->freed_count; i++)
        change_for_good(bank->freed[i], 1);
    memcpy(blocks->freed, bank->freed, sizeof blocks->freed);
    blocks->freed_count = bank->freed_count;
}

void look_at_blocks(void) {
    for (int block = 0; block < BLOCKS; block++)
        is_busy[block] = memory->map[block / WORD] >> block % WORD & 1;
}

void clear_recovered(const struct blocks *blocks) {
    for (int i = 0; i < blocks->freed_count; i++)
        change_for_good(blocks->freed[i], 0);
}

uint64_t blocks_taken(void) {
    uint64_t count = 0;
    for (int word = 0; word < BLOCKS / WORD; word++)
        count += __builtin_popcountll(memory->map[word]);
    return count;
}
