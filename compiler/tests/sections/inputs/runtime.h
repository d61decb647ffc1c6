/* The runtime of compiled sections over simulated memory. */
#pragma once
#include "simulated.h"

enum { LINE = 64, THREADS_MAX = 8, LOCKS_MAX = 8, WORDS_MAX = 128, STORED_MAX = 8, STACK = 16 * 1024 };
enum { BLOCKS = POOL_SIZE / LINE, BLOCKS_TOLD = 16 };

/* Words that were stored, each with the bytes of it that were; a count of more: that is not all. */
struct stores {
    uint64_t count;
    struct {
        uint64_t place, value;
        unsigned char is_stored[8];
    } word[STORED_MAX];
};

/* What lasts of a thread. */
struct bank {
    uint64_t checksum, sequence, code;
    uint32_t stack, frame, locks, words;
    uint64_t lock[LOCKS_MAX];
    struct stores stores;
    uint32_t taken_count, freed_count;
    uint16_t taken[BLOCKS_TOLD], freed[BLOCKS_TOLD];
    uint64_t word[WORDS_MAX];
};
struct frame {
    uint64_t code;
    uint32_t before, words;
    uint64_t free;
    uint64_t word[];
};
struct slot {
    _Alignas(LINE) struct bank banks[2];
    _Alignas(LINE) char stack[STACK];
};
struct memory {
    _Alignas(LINE) char pool[POOL_SIZE];
    _Alignas(LINE) uint64_t map[BLOCKS / 64];
    _Alignas(LINE) char heap[POOL_SIZE];
    _Alignas(LINE) char globals[4096];
    struct slot slots[THREADS_MAX];
};

/* What programs see, and what would be there after a power cut. */
static struct memory *const memory = (struct memory *)BASE;
extern struct memory *image;

static inline int is_durable(const void *place) { return (uintptr_t)place - BASE < sizeof *memory; }

/* In the place of a lock: a region that none guards. */
extern const char unguarded;
uint64_t name_of(const void *lock);
const void *lock_named(uint64_t name);
struct region;
/* Addresses in the program are others when it runs again. */
void make_relative(const struct region *region, uint64_t *words);
void make_absolute(const struct region *region, uint64_t *words);
struct function;
const struct function *function_of(uint64_t code);

/* What a thread has taken and freed, by the numbers of blocks. Of what it has freed the first ones are of sections that
 * have ended. The bits of others are cleared, and nobody may take these yet. */
struct thread;
struct blocks {
    int taken_count, freed_count, ended_count, cleared_count;
    uint16_t taken[BLOCKS_TOLD], freed[BLOCKS_TOLD], cleared[BLOCKS_TOLD];
};
void *take_block(struct blocks *blocks, size_t size);
void free_block(struct blocks *blocks, const void *object);
void tell_blocks(const struct blocks *blocks, struct bank *bank);
void set_taken(struct thread *thread, struct blocks *blocks);
void clear_freed(struct thread *thread, struct blocks *blocks);
/* A record is durable that tells of what is left. */
void end_blocks(struct blocks *blocks);
void recover_blocks(const struct bank *bank, struct blocks *blocks);
void look_at_blocks(void);
void clear_recovered(const struct blocks *blocks);
uint64_t blocks_taken(void);
/* What the next record can tell of. */
void note_stored(struct stores *stores, const void *start, size_t size);
void give_up(struct stores *stores);
int is_all(const struct stores *stores);
void tell_stored(const struct stores *stores, struct bank *bank);
/* In recovery, where each step is there for good at once. */
void store_again(const struct stores *stores);
/* The thread has stored there, which no record tells of; of no thread, nothing comes of it. */
void wrote(struct thread *thread, const void *start, size_t size);

/* What is left out, that a test has to notice. */
extern const char *fault;

/* That were passed. */
extern long fences;

/* Something may crash here. */
void event(void);
_Noreturn void fail(const char *what);

/* In new memory: gives global variables that last their values. */
void make_globals(void);

/* After a crash: completes the sections that it has interrupted. */
void complete(void);
