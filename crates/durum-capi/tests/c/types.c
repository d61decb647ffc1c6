/* Declared types: what the macros say, and what is refused. */
#include "check.h"
#include <stdbool.h>

typedef struct part {
    int16_t a;
    double b;
} part;
DURUM_TYPE(part, DURUM_FIELD(a), DURUM_FIELD(b))

/* Types that point to each other. */
typedef struct parent {
    struct child *child;
    struct parent *self;
} parent;
typedef struct child {
    struct parent *parent;
} child;
DURUM_TYPE_DECLARE(child)
DURUM_TYPE(parent, DURUM_PTR_TO(child, child), DURUM_PTR(self))
DURUM_TYPE(child, DURUM_PTR_TO(parent, parent))

typedef enum color { RED, GREEN } color;
typedef struct everything {
    bool flag;
    char character;
    signed char i8;
    unsigned char u8;
    short i16;
    unsigned short u16;
    int i32;
    unsigned int u32;
    long i64;
    unsigned long u64;
    long long ll;
    unsigned long long ull;
    float f32;
    double f64;
    color shade;
    uint32_t numbers[5];
    part one;
    part row[3];
    void *anything;
    const uint16_t *number;
    child *table[4];
    char name[24];
    union {
        uint64_t word;
        float parts[2];
    } raw;
    uint64_t lock;
} everything;
DURUM_TYPE(everything, DURUM_FIELD(flag), DURUM_FIELD(character), DURUM_FIELD(i8), DURUM_FIELD(u8),
           DURUM_FIELD(i16), DURUM_FIELD(u16), DURUM_FIELD(i32), DURUM_FIELD(u32), DURUM_FIELD(i64),
           DURUM_FIELD(u64), DURUM_FIELD(ll), DURUM_FIELD(ull), DURUM_FIELD(f32), DURUM_FIELD(f64),
           DURUM_FIELD(shade), DURUM_ARRAY(numbers), DURUM_STRUCT(one, part),
           DURUM_STRUCT_ARRAY(row, part), DURUM_PTR(anything), DURUM_PTR(number),
           DURUM_PTR_ARRAY_TO(table, child), DURUM_ARRAY(name), DURUM_BYTES(raw),
           DURUM_VOLATILE(lock))

typedef struct text {
    uint32_t length;
    uint8_t bytes[1];
} text;
DURUM_TYPE_AS(text, "some other name", DURUM_FIELD(length), DURUM_TAIL(bytes))

typedef struct buckets {
    uint64_t count;
    cell *first[1];
} buckets;
DURUM_TYPE(buckets, DURUM_FIELD(count), DURUM_PTR_TAIL_TO(first, cell))

typedef struct blob {
    char bytes[40];
} blob;
DURUM_TYPE_PLAIN(blob)

/* The same name, the same fields: the same type. */
typedef struct twin_of_part {
    int16_t a;
    double b;
} twin_of_part;
DURUM_TYPE_AS(twin_of_part, "part", DURUM_FIELD(b), DURUM_FIELD(a))

typedef struct other_part {
    uint16_t a;
    double b;
} other_part;
DURUM_TYPE_AS(other_part, "part", DURUM_FIELD(a), DURUM_FIELD(b))

static void ids_follow_names_and_layouts(void) {
    CHECK(durum_type_id(DURUM_TYPE_OF(part)) != 0);
    CHECK(durum_type_id(DURUM_TYPE_OF(part)) == durum_type_id(DURUM_TYPE_OF(part)));
    CHECK(durum_type_id(DURUM_TYPE_OF(part)) == durum_type_id(DURUM_TYPE_OF(twin_of_part)));
    CHECK(durum_type_id(DURUM_TYPE_OF(part)) != durum_type_id(DURUM_TYPE_OF(other_part)));
    CHECK(durum_type_id(DURUM_TYPE_OF(parent)) != durum_type_id(DURUM_TYPE_OF(child)));
    CHECK(durum_type_id(NULL) == 0);
    CHECK_CODE(durum_errorcode(), DURUM_E_ARGUMENT);
}

static void kinds_are_the_compilers(void) {
    const durum_type *type = DURUM_TYPE_OF(everything);
    static const uint32_t kinds[] = {
        DURUM_KIND_BOOL,    (char)-1 < 0 ? DURUM_KIND_I8 : DURUM_KIND_U8,
        DURUM_KIND_I8,      DURUM_KIND_U8,
        DURUM_KIND_I16,     DURUM_KIND_U16,
        DURUM_KIND_I32,     DURUM_KIND_U32,
        DURUM_KIND_I64,     DURUM_KIND_U64,
        DURUM_KIND_I64,     DURUM_KIND_U64,
        DURUM_KIND_F32,     DURUM_KIND_F64,
        DURUM_KIND_U32,     DURUM_KIND_U32,
        DURUM_KIND_STRUCT,  DURUM_KIND_STRUCT,
        DURUM_KIND_POINTER, DURUM_KIND_POINTER,
        DURUM_KIND_POINTER};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        CHECK(type->fields[i].kind == kinds[i]);
    }
    CHECK(type->fields[15].count == 5 && type->fields[15].size == 4);
    CHECK(type->fields[18].target_name == NULL && type->fields[18].target == NULL);
    CHECK(strcmp(type->fields[19].target_name, "u16") == 0);
    CHECK(durum_type_id(DURUM_TYPE_OF(everything)) != 0);
}

static void objects_of_every_type_are_allocated(void) {
    fixture f = fixture_new();
    everything *e = DURUM_ROOT(f.pool, everything);
    CHECK(e != NULL);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(e);
        e->table[2] = DURUM_TX_NEW(f.pool, child);
        e->table[2]->parent = DURUM_TX_NEW(f.pool, parent);
        e->table[2]->parent->child = e->table[2];
        size_t size = offsetof(text, bytes) + 300;
        text *t = (text *)durum_malloc_zeroed(f.pool, DURUM_TYPE_OF(text), size);
        CHECK(t != NULL);
        t->length = 300;
        e->anything = t;
        CHECK(DURUM_TX_NEW(f.pool, blob) != NULL);
        CHECK(DURUM_TX_NEW(f.pool, buckets) != NULL);
        CHECK(DURUM_TX_NEW(f.pool, twin_of_part) != NULL);
    }
    DURUM_TX_ONABORT {
        CHECK(0);
    }
    DURUM_TX_END
    CHECK(e->table[2]->parent->child == e->table[2]);
    fixture_close(&f);
}

/* A later version of a type, under which the pool goes on (docs/how-to/change-types.md). */
typedef struct before {
    uint64_t tries;
    struct before *next;
    char later[16];
} before;
DURUM_TYPE_AS(before, "task", DURUM_FIELD(tries), DURUM_PTR(next), DURUM_RESERVED(later))

typedef struct after {
    uint64_t attempts;
    struct after *next;
    uint64_t deadline;
    char later[8];
} after;
DURUM_TYPE_AS(after, "job", DURUM_TYPE_WAS("task"), DURUM_FIELD(attempts), DURUM_PTR(next),
              DURUM_WAS(attempts, "other"), DURUM_WAS(attempts, "tries"), DURUM_FIELD(deadline),
              DURUM_IN_RESERVED(deadline), DURUM_RESERVED(later))
/* Without a word about it. */
DURUM_TYPE_DECLARE(unsaid)
typedef after unsaid;
DURUM_TYPE_AS(unsaid, "task", DURUM_FIELD(attempts), DURUM_PTR(next), DURUM_FIELD(deadline),
              DURUM_RESERVED(later))

static void types_change_while_data_stays(void) {
    fixture f = fixture_new();
    before *old = DURUM_ROOT(f.pool, before);
    CHECK(old != NULL);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(old);
        old->tries = 7;
        old->next = DURUM_TX_NEW(f.pool, before);
    }
    DURUM_TX_END
    CHECK_NULL(DURUM_ROOT(f.pool, unsaid), DURUM_E_ROOT_TYPE);
    CHECK(strstr(durum_errormsg(), "which does not say that it was tries") != NULL);
    after *now = DURUM_ROOT(f.pool, after);
    CHECK((void *)now == (void *)old);
    CHECK(now->attempts == 7 && now->deadline == 0);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(now->next);
        now->next->deadline = 9;
        now->next->next = DURUM_TX_NEW(f.pool, after);
    }
    DURUM_TX_END
    CHECK(DURUM_ROOT(f.pool, after) == now);
    CHECK_NULL(DURUM_ROOT(f.pool, before), DURUM_E_ROOT_TYPE);
    CHECK(strstr(durum_errormsg(), "newer version") != NULL);
    fixture_close(&f);
}

static durum_type broken(const durum_field *fields, uint64_t count) {
    durum_type type = {"broken", 16, 8, fields, count, NULL};
    return type;
}

static void contradictions_are_refused(void) {
    static const durum_field overlap[] = {{"a", 0, 8, 0, 8, DURUM_KIND_U64, NULL, NULL},
                                          {"b", 4, 8, 0, 8, DURUM_KIND_U64, NULL, NULL}};
    static const durum_field outside[] = {{"a", 16, 8, 0, 8, DURUM_KIND_U64, NULL, NULL}};
    static const durum_field unknown[] = {{"a", 0, 8, 0, 8, 999, NULL, NULL}};
    static const durum_field nameless[] = {{NULL, 0, 8, 0, 8, DURUM_KIND_U64, NULL, NULL}};
    static const durum_field hollow[] = {{"a", 0, 8, 0, 8, DURUM_KIND_STRUCT, NULL, NULL}};
    static const durum_field nobody[] = {{"a", 0, 8, 0, 8, DURUM_KIND_POINTER, "nobody", NULL}};
    static const durum_field nothing[] = {{"a", 0, 0, 0, 0, DURUM_KIND_WAS, "b", NULL}};
    static const durum_field unsaid_was[] = {{"a", 0, 8, 0, 8, DURUM_KIND_U64, NULL, NULL},
                                             {"a", 0, 0, 0, 0, DURUM_KIND_WAS, NULL, NULL}};
    durum_type types[] = {broken(nothing, 1), broken(unsaid_was, 2), broken(overlap, 2),
                          broken(outside, 1), broken(unknown, 1),    broken(nameless, 1),
                          broken(hollow, 1),  broken(nobody, 1),     {NULL, 16, 8, NULL, 0, NULL}};
    fixture f = fixture_new();
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        CHECK(durum_type_id(&types[i]) == 0);
        CHECK_CODE(durum_errorcode(), DURUM_E_TYPE);
        CHECK_NULL(durum_malloc(f.pool, &types[i], 16), DURUM_E_TYPE);
        CHECK_NULL(durum_root(f.pool, &types[i], 16), DURUM_E_TYPE);
    }
    fixture_close(&f);
}

const test type_tests[] = {
    {"ids_follow_names_and_layouts", ids_follow_names_and_layouts},
    {"kinds_are_the_compilers", kinds_are_the_compilers},
    {"objects_of_every_type_are_allocated", objects_of_every_type_are_allocated},
    {"types_change_while_data_stays", types_change_while_data_stays},
    {"contradictions_are_refused", contradictions_are_refused},
    {NULL, NULL},
};
