/* Pools that are made anew under other types. */
#include "check.h"

typedef struct old_item {
    uint64_t number;
    struct old_item *next;
    uint16_t weight;
} old_item;
DURUM_TYPE_AS(old_item, "item", DURUM_FIELD(number), DURUM_PTR(next), DURUM_FIELD(weight))

typedef struct item {
    struct item *next;
    uint32_t weight;
    uint32_t parity;
    uint64_t number;
} item;
DURUM_TYPE(item, DURUM_PTR(next), DURUM_FIELD(weight), DURUM_FIELD(parity), DURUM_FIELD(number))

typedef struct old_list {
    old_item *first;
    uint16_t *weight; /* in the last item */
} old_list;
DURUM_TYPE_AS(old_list, "list", DURUM_PTR_TO(first, old_item), DURUM_PTR(weight))

typedef struct list {
    uint32_t version;
    item *first;
    uint32_t *weight;
} list;
DURUM_TYPE(list, DURUM_FIELD(version), DURUM_PTR_TO(first, item), DURUM_PTR(weight))

static int made_list(const void *was, void *now, void *argument) {
    const old_list *old = (const old_list *)was;
    list *made = (list *)now;
    CHECK(made->version == 0 && made->first == NULL);
    made->version = *(uint32_t *)argument;
    made->first = (item *)old->first;
    made->weight = (uint32_t *)old->weight;
    return 0;
}

static int forgetful(const void *was, void *now, void *argument) {
    (void)was, (void)now, (void)argument;
    return 0;
}

static int refusing(const void *was, void *now, void *argument) {
    (void)was, (void)now, (void)argument;
    return 7;
}

static int made_item(const void *was, void *now, void *argument) {
    const old_item *old = (const old_item *)was;
    item *made = (item *)now;
    (void)argument;
    made->number = old->number;
    made->weight = old->weight;
    /* What it leads to is there to be looked at. */
    made->parity = old->next == NULL ? 2 : old->next->number % 2;
    made->next = (item *)old->next;
    return 0;
}

static void a_pool_is_made_anew_by_functions(void) {
    if (is_served())
        return;
    const char *path = store_path();
    fixture f = fixture_new();
    DURUM_TX_BEGIN(f.pool) {
        old_list *all = DURUM_ROOT(f.pool, old_list);
        DURUM_TX_ADD(all);
        for (int i = 3; i > 0; i--) {
            old_item *made = DURUM_TX_NEW(f.pool, old_item);
            made->number = i;
            made->weight = 10 * i;
            made->next = all->first;
            if (i == 3)
                all->weight = &made->weight;
            all->first = made;
        }
    }
    DURUM_TX_END
    durum_type *root = DURUM_TYPE_OF(list);
    uint32_t version = 2;
    durum_migrated_type types[] = {
        {DURUM_TYPE_OF(old_list), DURUM_TYPE_OF(list), made_list, &version},
        {DURUM_TYPE_OF(old_item), DURUM_TYPE_OF(item), made_item, NULL},
    };
    CHECK_CODE(durum_pool_migrate(path, "pool", root, types, 2, 0), DURUM_E_STORE_BUSY);
    fixture_close(&f);

    CHECK_CODE(durum_pool_migrate(path, "pool", NULL, types, 2, 0), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_migrate(path, "pool", root, NULL, 2, 0), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_migrate(path, "pool", root, types, 2, 64), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_migrate(path, "none", root, types, 2, 0), DURUM_E_POOL_MISSING);
    CHECK_CODE(durum_pool_migrate(path, "pool", root, NULL, 0, 0), DURUM_E_MIGRATION);
    CHECK(strstr(durum_errormsg(), "list.version: it is new, and has no default") != NULL);
    types[1].make = forgetful;
    CHECK_CODE(durum_pool_migrate(path, "pool", root, types, 2, DURUM_MIGRATE_PLAN),
               DURUM_E_MIGRATION);
    CHECK(strstr(durum_errormsg(), "item: its function forgets a pointer") != NULL);
    types[1].make = refusing;
    CHECK_CODE(durum_pool_migrate(path, "pool", root, types, 2, 0), DURUM_E_MIGRATION);
    CHECK(strstr(durum_errormsg(), "item: its function gave 7 (3 objects)") != NULL);
    types[1].make = made_item;
    CHECK_CODE(durum_pool_migrate(path, "pool", root, types, 2, DURUM_MIGRATE_PLAN), DURUM_OK);
    CHECK_CODE(durum_pool_migrate(path, "pool", root, types, 2, 0), DURUM_OK);

    f.store = durum_store_open(path, NULL);
    f.pool = durum_pool_open(f.store, "pool", NULL);
    CHECK_NULL(DURUM_ROOT(f.pool, old_list), DURUM_E_ROOT_TYPE);
    list *all = DURUM_ROOT(f.pool, list);
    CHECK(all != NULL && all->version == 2);
    uint64_t number = 0;
    for (const item *it = all->first; it != NULL; it = it->next) {
        number++;
        CHECK(it->number == number && it->weight == 10 * number);
        CHECK(it->parity == (it->next == NULL ? 2 : (number + 1) % 2));
        CHECK(it->next != NULL || all->weight == &it->weight);
    }
    CHECK(number == 3);
    fixture_close(&f);
}

typedef struct short_list {
    uint32_t version;
    item *first;
} short_list;
DURUM_TYPE_AS(short_list, "list", DURUM_FIELD(version), DURUM_PTR_TO(first, item))

/* What is said of fields needs no function. */
static void fields_have_defaults_and_are_forgotten(void) {
    if (is_served())
        return;
    const char *path = store_path();
    fixture f = fixture_new();
    DURUM_TX_BEGIN(f.pool) {
        old_list *all = DURUM_ROOT(f.pool, old_list);
        DURUM_TX_ADD(all);
        all->first = DURUM_TX_NEW(f.pool, old_item);
        all->first->number = 11;
        all->weight = &all->first->weight;
    }
    DURUM_TX_END
    fixture_close(&f);

    uint32_t version = 5;
    durum_migrated_pool pool = {"pool", DURUM_TYPE_OF(short_list)};
    durum_migrated_type types[] = {
        {DURUM_TYPE_OF(old_item), DURUM_TYPE_OF(item), made_item, NULL},
        {NULL, DURUM_TYPE_OF(short_list), NULL, NULL},
    };
    durum_migrated_field fields[] = {
        {"list", "version", DURUM_KIND_U32, &version},
        {"list", "weight", DURUM_KIND_BYTES, NULL},
    };
    durum_migration how = DURUM_MIGRATION_INIT;
    durum_migration_report report;
    CHECK_CODE(durum_migrate(path, &how, &report), DURUM_E_ARGUMENT);
    how.pools = &pool;
    how.pool_count = 1;
    how.types = types;
    how.type_count = 2;
    CHECK_CODE(durum_migrate(path, NULL, &report), DURUM_E_ARGUMENT);
    how.struct_size--;
    CHECK_CODE(durum_migrate(path, &how, &report), DURUM_E_ARGUMENT);
    how.struct_size++;
    how.field_count = 1;
    CHECK_CODE(durum_migrate(path, &how, &report), DURUM_E_ARGUMENT);
    how.fields = fields;
    CHECK_CODE(durum_migrate(path, &how, &report), DURUM_E_MIGRATION);
    CHECK(strstr(durum_errormsg(), "list.weight") != NULL);
    how.field_count = 2;
    fields[0].kind = DURUM_KIND_POINTER;
    CHECK_CODE(durum_migrate(path, &how, &report), DURUM_E_ARGUMENT);
    fields[0].kind = DURUM_KIND_U64;
    uint64_t wide = 5;
    fields[0].value = &wide;
    CHECK_CODE(durum_migrate(path, &how, &report), DURUM_E_MIGRATION);
    CHECK(strstr(durum_errormsg(), "list.version: its default is a u64") != NULL);
    fields[0].kind = DURUM_KIND_U32;
    fields[0].value = &version;
    how.flags = DURUM_MIGRATE_PLAN;
    CHECK_CODE(durum_migrate(path, &how, &report), DURUM_OK);
    CHECK(report.objects == 2 && report.puddles == 1 && report.rebuilt_maps == 0);
    how.flags = 0;
    CHECK_CODE(durum_migrate(path, &how, NULL), DURUM_OK);

    f.store = durum_store_open(path, NULL);
    f.pool = durum_pool_open(f.store, "pool", NULL);
    const short_list *all = DURUM_ROOT(f.pool, short_list);
    CHECK(all != NULL && all->version == 5 && all->first->number == 11);
    fixture_close(&f);
}

static old_item *only_item(durum_pool *pool, uint64_t number) {
    DURUM_TX_BEGIN(pool) {
        old_list *all = DURUM_ROOT(pool, old_list);
        DURUM_TX_ADD(all);
        all->first = DURUM_TX_NEW(pool, old_item);
        all->first->number = number;
        all->first->weight = 10;
    }
    DURUM_TX_END
    return DURUM_ROOT(pool, old_list)->first;
}

static void lead(durum_pool *pool, old_item *from, old_item *to) {
    DURUM_TX_BEGIN(pool) {
        DURUM_TX_ADD(from);
        from->next = to;
    }
    DURUM_TX_END
}

/* Two pools, each with an item that leads to the other one's: neither is made anew alone. */
static void pools_that_lead_into_each_other_are_made_anew_together(void) {
    if (is_served())
        return;
    const char *path = store_path();
    fixture f = fixture_new();
    durum_pool *other = durum_pool_create(f.store, "other", NULL);
    old_item *ours = only_item(f.pool, 0);
    old_item *its = only_item(other, 1);
    lead(f.pool, ours, its);
    lead(other, its, ours);
    CHECK_CODE(durum_pool_close(other), DURUM_OK);
    fixture_close(&f);

    uint32_t version = 3;
    durum_migrated_type types[] = {
        {DURUM_TYPE_OF(old_list), DURUM_TYPE_OF(list), made_list, &version},
        {DURUM_TYPE_OF(old_item), DURUM_TYPE_OF(item), made_item, NULL},
    };
    durum_migrated_pool both[] = {{"pool", DURUM_TYPE_OF(list)}, {"other", DURUM_TYPE_OF(list)}};
    CHECK_CODE(durum_pool_migrate(path, "pool", DURUM_TYPE_OF(list), types, 2, 0),
               DURUM_E_MIGRATION);
    CHECK(strstr(durum_errormsg(), "pool \"other\", item: a pointer of it leads into the pool") !=
          NULL);
    CHECK_CODE(durum_pools_migrate(path, both, 0, types, 2, 0), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pools_migrate(path, NULL, 2, types, 2, 0), DURUM_E_ARGUMENT);
    durum_migrated_pool same[] = {both[0], both[0]};
    CHECK_CODE(durum_pools_migrate(path, same, 2, types, 2, 0), DURUM_E_OPTIONS);
    durum_migrated_pool none[] = {both[0], {"none", DURUM_TYPE_OF(list)}};
    CHECK_CODE(durum_pools_migrate(path, none, 2, types, 2, 0), DURUM_E_POOL_MISSING);
    durum_migrated_pool typeless[] = {both[0], {"other", NULL}};
    CHECK_CODE(durum_pools_migrate(path, typeless, 2, types, 2, 0), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pools_migrate(path, both, 2, types, 2, DURUM_MIGRATE_PLAN), DURUM_OK);
    CHECK_CODE(durum_pools_migrate(path, both, 2, types, 2, 0), DURUM_OK);

    f.store = durum_store_open(path, NULL);
    f.pool = durum_pool_open(f.store, "pool", NULL);
    other = durum_pool_open(f.store, "other", NULL);
    const list *one = DURUM_ROOT(f.pool, list);
    const list *two = DURUM_ROOT(other, list);
    CHECK(one != NULL && one->version == 3 && two != NULL && two->version == 3);
    CHECK(one->first->number == 0 && one->first->parity == 1 && one->first->weight == 10);
    CHECK(two->first->number == 1 && two->first->parity == 0);
    CHECK(one->first->next == two->first && two->first->next == one->first);
    CHECK_CODE(durum_pool_close(other), DURUM_OK);
    fixture_close(&f);
}

const test migration_tests[] = {
    {"a_pool_is_made_anew_by_functions", a_pool_is_made_anew_by_functions},
    {"fields_have_defaults_and_are_forgotten", fields_have_defaults_and_are_forgotten},
    {"pools_that_lead_into_each_other_are_made_anew_together",
     pools_that_lead_into_each_other_are_made_anew_together},
    {NULL, NULL},
};
