/* Names that last, of what lies elsewhere when a program runs again: its functions, global variables, locks and
 * addresses. What compiled code registers is looked up here. */
#include "contract.h"
#include "runtime.h"

#include <string.h>

extern char __executable_start[], _end[];
/* A program with sanitizers has hundreds of locks. */
enum { NAMED_FILES_MAX = 64, NAMED_LOCKS_MAX = 4096, NAMED_GLOBALS_MAX = 64 };
static struct function *functions[NAMED_FILES_MAX];
static uint64_t function_counts[NAMED_FILES_MAX];
static int table_count;
static const struct lock *locks[NAMED_LOCKS_MAX];
static int lock_count;
static struct global *globals[NAMED_GLOBALS_MAX];
static int global_count;

const char unguarded;

void __durum_ido_register(struct function *table, uint64_t count) {
    if (table_count == NAMED_FILES_MAX)
        fail("more files than the simulated runtime has room for");
    functions[table_count] = table;
    function_counts[table_count++] = count;
}

const struct function *function_of(uint64_t code) {
    for (int i = 0; i < table_count; i++)
        for (uint64_t j = 0; j < function_counts[i]; j++)
            if (functions[i][j].hash == code >> 16)
                return &functions[i][j];
    fail("nobody knows the code of a section");
    return NULL;
}

/* Global variables, which the same program has in the same order. */
void __durum_ido_register_globals(struct global **table, uint64_t count) {
    if (count > (uint64_t)(NAMED_GLOBALS_MAX - global_count))
        fail("more global variables than the simulated runtime has room for");
    for (uint64_t i = 0; i < count; i++)
        globals[global_count++] = table[i];
}

static void *place_of(const char *name) {
    uintptr_t place = (uintptr_t)memory->globals;
    for (int i = 0; i < global_count; i++) {
        place = (place + globals[i]->align - 1) & -globals[i]->align;
        if (!strcmp(globals[i]->name, name))
            return (void *)place;
        place += globals[i]->size;
    }
    fail(name);
}

void *__durum_ido_global(struct global *global) {
    if (!global->place)
        global->place = place_of(global->name);
    return global->place;
}

void make_globals(void) {
    for (int i = 0; i < global_count; i++)
        memcpy(__durum_ido_global(globals[i]), globals[i]->initial, globals[i]->size);
}

/* Locks by names that last. */
enum { PLACE_BITS = 20, UNGUARDED = 1 };

void __durum_ido_register_locks(const struct lock *table, uint64_t count) {
    if (count > (uint64_t)(NAMED_LOCKS_MAX - lock_count))
        fail("more locks than the simulated runtime has room for");
    for (uint64_t i = 0; i < count; i++)
        locks[lock_count++] = &table[i];
}

/* The same program resumes its sections, where all lies as it did. */
void __durum_ido_register_addresses(const struct lock *table, uint64_t count) {
    (void)table, (void)count;
}

uint64_t name_of(const void *lock) {
    if (is_durable(lock))
        return (uint64_t)lock;
    if (lock == &unguarded)
        return 1ull << 63 | UNGUARDED;
    for (int i = 0; i < lock_count; i++) {
        uint64_t place = (char *)lock - (char *)locks[i]->place;
        if (place < locks[i]->size)
            return 1ull << 63 | locks[i]->name << PLACE_BITS | place / 4;
    }
    fail("a lock has no name");
}

const void *lock_named(uint64_t name) {
    if (!(name >> 63))
        return (void *)name;
    if (name << 1 == UNGUARDED << 1)
        return &unguarded;
    for (int i = 0; i < lock_count; i++)
        if ((name << 1 >> 1) >> PLACE_BITS == locks[i]->name)
            return (char *)locks[i]->place + 4 * (name & ((1 << PLACE_BITS) - 1));
    fail("nobody knows a lock");
}

/* Addresses in the program are others when it runs again. */
enum { IN_PROGRAM = 63 };

void make_relative(const struct region *region, uint64_t *words) {
    for (int i = 0; i < region->words; i++) {
        uint64_t place = words[i] - (uint64_t)__executable_start;
        if (region->addresses[i / 64] >> i % 64 & 1 && place < (uint64_t)(_end - __executable_start))
            words[i] = 1ull << IN_PROGRAM | place;
    }
}
void make_absolute(const struct region *region, uint64_t *words) {
    for (int i = 0; i < region->words; i++)
        if (region->addresses[i / 64] >> i % 64 & words[i] >> IN_PROGRAM & 1)
            words[i] = (words[i] & ~(1ull << IN_PROGRAM)) + (uint64_t)__executable_start;
}
