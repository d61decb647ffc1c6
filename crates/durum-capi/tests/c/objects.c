/* Objects: root, allocation, freeing, persist. */
#include "check.h"

#include <errno.h>
#include <unistd.h>

static void a_root_is_zeroed_kept_and_typed(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    CHECK(root != NULL && root->value == 0 && root->other == 0 && root->next == NULL);
    CHECK(DURUM_ROOT(f.pool, cell) == root);
    CHECK_NULL(durum_root(f.pool, NULL, sizeof(cell)), DURUM_E_ROOT_TYPE);
    CHECK_NULL(durum_root(f.pool, DURUM_TYPE_OF(cell), 2 * sizeof(cell)), DURUM_E_ROOT_TYPE);
    CHECK_NULL(durum_root(f.pool, DURUM_TYPE_OF(cell), 4), DURUM_E_ARGUMENT);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(root);
        root->value = 7;
    }
    DURUM_TX_END
    fixture_close(&f);

    f.store = durum_store_open(store_path(), NULL);
    f.pool = durum_pool_open(f.store, "pool", NULL);
    CHECK(DURUM_ROOT(f.pool, cell) == root && root->value == 7);
    fixture_close(&f);
    CHECK_NULL(durum_root(NULL, DURUM_TYPE_OF(cell), sizeof(cell)), DURUM_E_ARGUMENT);
}

static void a_root_that_does_not_fit_is_refused(void) {
    fixture f = fixture_new();
    CHECK_NULL(durum_root(f.pool, NULL, 3 << 20), DURUM_E_OBJECT_SIZE);
    CHECK(durum_root(f.pool, NULL, 1 << 20) != NULL);
    fixture_close(&f);
}

static void a_root_made_in_an_aborted_transaction_was_never_made(void) {
    fixture f = fixture_new();
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK(DURUM_ROOT(f.pool, cell) != NULL);
    CHECK_CODE(durum_tx_rollback(), DURUM_OK);
    CHECK(durum_root(f.pool, NULL, 64) != NULL);
    fixture_close(&f);
}

static void objects_outside_of_transactions_exist_at_once(void) {
    fixture f = fixture_new();
    static const size_t sizes[] = {1, 8, 24, 255, 256, 257, 4096, 100000, 3 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned char *object = (unsigned char *)durum_malloc(f.pool, NULL, sizes[i]);
        CHECK(object != NULL && (uintptr_t)object % 16 == 0);
        memset(object, 0xab, sizes[i]);
        CHECK_CODE(durum_persist(object, sizes[i]), DURUM_OK);
        CHECK_CODE(durum_free(object), DURUM_OK);
        object = (unsigned char *)durum_malloc_zeroed(f.pool, NULL, sizes[i]);
        CHECK(object != NULL);
        for (size_t at = 0; at < sizes[i]; at++) {
            CHECK(object[at] == 0);
        }
        CHECK_CODE(durum_free(object), DURUM_OK);
        /* An empty puddle is given back, and the address is in no pool then. */
        int again = durum_free(object);
        CHECK(again == DURUM_E_NOT_ALLOCATED || again == DURUM_E_NOT_IN_POOL);
    }
    CHECK(durum_tx_level() == 0);
    CHECK_CODE(durum_free(NULL), DURUM_OK);
    fixture_close(&f);
}

static void impossible_objects_are_refused(void) {
    fixture f = fixture_new();
    CHECK_NULL(durum_malloc(f.pool, NULL, (size_t)1 << 60), DURUM_E_OBJECT_SIZE);
    CHECK_NULL(durum_malloc(f.pool, DURUM_TYPE_OF(cell), sizeof(cell) - 1), DURUM_E_ARGUMENT);
    CHECK(durum_malloc(f.pool, DURUM_TYPE_OF(cell), 10 * sizeof(cell)) != NULL);
    int local = 0;
    CHECK_CODE(durum_free(&local), DURUM_E_NOT_IN_POOL);
    cell *object = DURUM_NEW(f.pool, cell);
    CHECK(object != NULL);
    CHECK_CODE(durum_free(&object->other), DURUM_E_NOT_ALLOCATED);
    CHECK_CODE(durum_free(object), DURUM_OK);
    fixture_close(&f);
}

static void the_root_is_not_freed(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    volatile int code = 0;
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_FREE(root);
    }
    DURUM_TX_ONABORT {
        code = durum_errorcode();
    }
    DURUM_TX_END
    CHECK_CODE(code, DURUM_E_ROOT_FREED);
    CHECK(strstr(durum_errormsg(), "root of pool \"pool\"") != NULL);
    CHECK_CODE(durum_free(root), DURUM_E_ROOT_FREED);
    fixture_close(&f);
}

static void a_block_may_go_on_without_what_it_could_not_allocate(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    DURUM_TX_BEGIN_WITH(f.pool, DURUM_DURABLE | DURUM_ALLOC_MAY_FAIL) {
        DURUM_TX_ADD(root);
        root->value = 1;
        CHECK_NULL(durum_malloc(f.pool, NULL, (size_t)1 << 50), DURUM_E_OBJECT_SIZE);
        root->other = 2;
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_OK);
    CHECK(root->value == 1 && root->other == 2);
    /* And so may a transaction that is no block. */
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_NULL(durum_malloc(f.pool, NULL, (size_t)1 << 50), DURUM_E_OBJECT_SIZE);
    CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
    root->value = 3;
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    fixture_close(&f);
}

/* Each way to allocate that gives NULL, by number. */
static void *fails_to_allocate(durum_pool *pool, int way) {
    switch (way) {
    case 0:
        return durum_malloc(pool, NULL, (size_t)1 << 50);
    case 1:
        return durum_malloc_zeroed(pool, DURUM_TYPE_OF(cell), (size_t)1 << 50);
    case 2:
        return durum_strdup(pool, NULL);
    default:
        return DURUM_NEW(NULL, cell);
    }
}

static void a_block_that_forgets_a_failed_allocation_aborts(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    for (int way = 0; way < 4; way++) {
        volatile int code = 0;
        DURUM_TX_BEGIN(f.pool) {
            DURUM_TX_ADD(root);
            root->value = 1;
            CHECK(fails_to_allocate(f.pool, way) == NULL);
            code = durum_errorcode();
            /* The next one works, and does not make up for it. */
            root->next = DURUM_TX_NEW(f.pool, cell);
        }
        DURUM_TX_ONABORT {
            CHECK_CODE(durum_errorcode(), code);
            CHECK(strstr(durum_errormsg(), "objects.c") != NULL);
            CHECK(strstr(durum_errormsg(), "allocation") != NULL);
            code = DURUM_E_ABORTED;
        }
        DURUM_TX_END
        CHECK_CODE(code, DURUM_E_ABORTED);
        CHECK(root->value == 0 && root->next == NULL);
    }
    /* In a block in a block. */
    volatile int aborted = 0;
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_BEGIN(f.pool) {
            CHECK(fails_to_allocate(f.pool, 0) == NULL);
        }
        DURUM_TX_END
        CHECK(0);
    }
    DURUM_TX_ONABORT {
        aborted = durum_errorcode();
    }
    DURUM_TX_END
    CHECK_CODE(aborted, DURUM_E_OBJECT_SIZE);
    fixture_close(&f);
}

typedef struct text {
    char *name;
    uint64_t length;
    char letters[1]; /* as C++ has it */
} text;
DURUM_TYPE(text, DURUM_PTR(name), DURUM_FIELD(length), DURUM_TAIL(letters))

static void room_behind_an_object_and_copies_of_strings(void) {
    fixture f = fixture_new();
    text *volatile made = NULL;
    DURUM_TX_BEGIN(f.pool) {
        made = DURUM_TX_ALLOC(f.pool, text, sizeof(text) + 100);
        made->length = 100;
        made->name = DURUM_TX_STRDUP(f.pool, "a name");
        CHECK(made->letters[99] == 0);
        memset(made->letters, 'x', 100);
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_OK);
    CHECK(strcmp(made->name, "a name") == 0 && made->letters[99] == 'x');
    char *copy = durum_strdup(f.pool, "");
    CHECK(copy != NULL && *copy == '\0');
    CHECK_CODE(durum_free(copy), DURUM_OK);
    volatile int code = 0;
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ALLOC(f.pool, text, (size_t)1 << 50);
        CHECK(0);
    }
    DURUM_TX_ONABORT {
        code = durum_errorcode();
    }
    DURUM_TX_END
    CHECK_CODE(code, DURUM_E_OBJECT_SIZE);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_STRDUP(f.pool, NULL);
        CHECK(0);
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_E_ARGUMENT);
    fixture_close(&f);
}

/* Whether a system call can write to the object, which becomes "1234". */
static int system_writes(char *object) {
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "1234", 4) == 4);
    ssize_t count = read(ends[0], object, 4);
    CHECK(count == 4 || (count == -1 && errno == EFAULT));
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    return count == 4 && memcmp(object, "1234", 4) == 0;
}

static void a_touch_maps_for_system_calls(void) {
    fixture f = fixture_new();
    /* So large that it has a puddle of its own. */
    char *object = (char *)durum_malloc(f.pool, NULL, 3 << 20);
    CHECK(object != NULL);
    fixture_close(&f);

    CHECK(setenv("DURUM_MAPPING", "signal", 1) == 0);
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    static const uint32_t ways[] = {DURUM_MAPPING_DEFAULT, DURUM_MAPPING_EAGER,
                                    DURUM_MAPPING_ON_DEMAND, DURUM_MAPPING_USERFAULTFD,
                                    DURUM_MAPPING_SIGNAL};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        options.mapping = ways[i];
        f.store = durum_store_open(store_path(), &options);
        f.pool = durum_pool_open(f.store, "pool", NULL);
        CHECK(f.pool != NULL);
        /* The option counts more than the environment. A process may have a userfaultfd that works
         * for the system's own accesses, and no handler of signals does. */
        int is_by_signal = ways[i] == DURUM_MAPPING_DEFAULT || ways[i] == DURUM_MAPPING_SIGNAL;
        if (is_by_signal || ways[i] == DURUM_MAPPING_EAGER)
            CHECK(system_writes(object) == !is_by_signal);
        CHECK_CODE(durum_touch(object, 3 << 20), DURUM_OK);
        CHECK(system_writes(object));
        fixture_close(&f);
    }
    CHECK(unsetenv("DURUM_MAPPING") == 0);
    options.mapping = 5;
    CHECK_NULL(durum_store_open(store_path(), &options), DURUM_E_ARGUMENT);

    f.store = durum_store_open(store_path(), NULL);
    f.pool = durum_pool_open(f.store, "pool", NULL);
    int local = 0;
    CHECK_CODE(durum_touch(object, 0), DURUM_OK);
    CHECK_CODE(durum_touch(NULL, 8), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_touch(&local, sizeof(local)), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_touch(object, (size_t)1 << 40), DURUM_E_NOT_IN_POOL);
    fixture_close(&f);
}

static void an_access_maps_what_waits(void) {
    enum { LARGE = 3 << 20 };
    fixture f = fixture_new();
    unsigned char *object = (unsigned char *)durum_malloc(f.pool, NULL, LARGE);
    CHECK(object != NULL);
    memset(object, 7, LARGE);
    CHECK_CODE(durum_persist(object, LARGE), DURUM_OK);
    fixture_close(&f);

    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    for (options.mapping = DURUM_MAPPING_EAGER; options.mapping <= DURUM_MAPPING_SIGNAL;
         options.mapping++) {
        f.store = durum_store_open(store_path(), &options);
        f.pool = durum_pool_open(f.store, "pool", NULL);
        CHECK(f.pool != NULL);
        CHECK(object[0] == 7 && object[LARGE - 1] == 7);
        object[5]++;
        CHECK_CODE(durum_persist(object + 5, 1), DURUM_OK);
        fixture_close(&f);
    }
    f.store = durum_store_open(store_path(), NULL);
    f.pool = durum_pool_open(f.store, "pool", NULL);
    CHECK(f.pool != NULL && object[5] == 7 + 4);
    fixture_close(&f);
}

static void a_pointer_opens_the_pool_that_it_leads_to(void) {
    fixture f = fixture_new();
    durum_pool *other = durum_pool_create(f.store, "other", NULL);
    CHECK(other != NULL);
    cell **root = (cell **)durum_root(f.pool, NULL, sizeof(cell *));
    cell *target = DURUM_ROOT(other, cell);
    CHECK(root != NULL && target != NULL);
    target->value = 5;
    *root = target;
    CHECK_CODE(durum_persist(&target->value, sizeof(target->value)), DURUM_OK);
    CHECK_CODE(durum_persist(root, sizeof(*root)), DURUM_OK);
    CHECK_CODE(durum_pool_close(other), DURUM_OK);
    fixture_close(&f);

    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    for (uint32_t round = 0; round < 3; round++) {
        static const uint32_t ways[] = {DURUM_MAPPING_EAGER, DURUM_MAPPING_USERFAULTFD,
                                        DURUM_MAPPING_SIGNAL};
        options.mapping = ways[round];
        options.flags = round == 0 ? DURUM_STORE_FOLLOW_WRITING : 0;
        f.store = durum_store_open(store_path(), &options);
        f.pool = durum_pool_open(f.store, "pool", NULL);
        CHECK(f.pool != NULL);
        CHECK((*root)->value == 5 + round);
        DURUM_TX_BEGIN(f.pool) {
            DURUM_TX_ADD(&target->value);
            target->value++;
        }
        DURUM_TX_END
        durum_store_let_go(f.store);
        CHECK(!durum_in_pool(target));
        CHECK_CODE(durum_touch(target, sizeof(*target)), DURUM_OK);
        CHECK(durum_in_pool(target) && target->value == 6 + round);
        fixture_close(&f);
    }
    options.flags = DURUM_STORE_FOLLOW_NEVER;
    f.store = durum_store_open(store_path(), &options);
    f.pool = durum_pool_open(f.store, "pool", NULL);
    CHECK_CODE(durum_touch(target, sizeof(*target)), DURUM_E_NOT_IN_POOL);
    fixture_close(&f);
    options.flags |= DURUM_STORE_FOLLOW_READING;
    CHECK_NULL(durum_store_open(store_path(), &options), DURUM_E_ARGUMENT);
    durum_store_let_go(NULL);
}

static void persist_wants_pool_memory(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    root->value = 9;
    CHECK_CODE(durum_persist(&root->value, sizeof(root->value)), DURUM_OK);
    CHECK_CODE(durum_persist(root, 0), DURUM_OK);
    CHECK_CODE(durum_persist(NULL, 8), DURUM_E_ARGUMENT);
    int local = 0;
    CHECK_CODE(durum_persist(&local, sizeof(local)), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_persist(root, (size_t)1 << 40), DURUM_E_NOT_IN_POOL);
    fixture_close(&f);
}

static void a_pool_grows_and_many_objects_keep_their_contents(void) {
    enum { COUNT = 20000 };
    fixture f = fixture_new();
    cell **objects = (cell **)malloc(COUNT * sizeof(*objects));
    for (uint64_t i = 0; i < COUNT; i++) {
        objects[i] = (cell *)durum_malloc(f.pool, DURUM_TYPE_OF(cell), 16 * sizeof(cell));
        CHECK(objects[i] != NULL);
        objects[i]->value = i;
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK(objects[i]->value == i);
        CHECK_CODE(durum_free(objects[i]), DURUM_OK);
    }
    free(objects);
    fixture_close(&f);
}

const test object_tests[] = {
    {"a_root_is_zeroed_kept_and_typed", a_root_is_zeroed_kept_and_typed},
    {"a_root_that_does_not_fit_is_refused", a_root_that_does_not_fit_is_refused},
    {"a_root_made_in_an_aborted_transaction_was_never_made",
     a_root_made_in_an_aborted_transaction_was_never_made},
    {"objects_outside_of_transactions_exist_at_once",
     objects_outside_of_transactions_exist_at_once},
    {"impossible_objects_are_refused", impossible_objects_are_refused},
    {"the_root_is_not_freed", the_root_is_not_freed},
    {"a_block_may_go_on_without_what_it_could_not_allocate",
     a_block_may_go_on_without_what_it_could_not_allocate},
    {"a_block_that_forgets_a_failed_allocation_aborts",
     a_block_that_forgets_a_failed_allocation_aborts},
    {"room_behind_an_object_and_copies_of_strings", room_behind_an_object_and_copies_of_strings},
    {"persist_wants_pool_memory", persist_wants_pool_memory},
    {"a_touch_maps_for_system_calls", a_touch_maps_for_system_calls},
    {"an_access_maps_what_waits", an_access_maps_what_waits},
    {"a_pointer_opens_the_pool_that_it_leads_to", a_pointer_opens_the_pool_that_it_leads_to},
    {"a_pool_grows_and_many_objects_keep_their_contents",
     a_pool_grows_and_many_objects_keep_their_contents},
    {NULL, NULL},
};
