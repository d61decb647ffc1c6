/* What compiled code tells of itself (docs/reference/ido-ir.md). */
#pragma once
#include <stdint.h>

/* Flags of a region. */
enum { BEGINS_SECTION = 1, NEEDS_LOCALS = 2, HANDS_OVER = 4 };

struct region {
    uint64_t code;
    uint32_t line;
    uint16_t words, flags;
    uint64_t addresses[2];
};
struct place {
    const char *refusal, *subject, *function, *file;
    uint64_t line;
};
struct global {
    void *place;
    const char *name;
    const void *initial;
    uint64_t size, align;
    const char *type;
};
/* Of which the variable may be an array. */
struct lock {
    void *place;
    uint64_t size, name;
};
struct function {
    uint64_t hash;
    const char *name, *file;
    void (*resume)(const void *, uint32_t, void *, void (*)(void));
    void (*code)(void);
    const struct region *regions;
    uint64_t count;
};
