/* Stores and pools: made, opened, closed, and refused. */
#include "check.h"
#include <fcntl.h>
#include <unistd.h>

static void a_store_is_made_once_and_opened_again(void) {
    CHECK_NULL(durum_store_open(scratch("store"), NULL), DURUM_E_STORE_MISSING);
    durum_store *store = durum_store_create(scratch("store"), NULL);
    CHECK(store != NULL);
    CHECK_NULL(durum_store_create(scratch("store"), NULL), DURUM_E_STORE_EXISTS);
    CHECK_NULL(durum_store_open(scratch("store"), NULL), DURUM_E_STORE_BUSY);
    CHECK_NULL(durum_store_open_or_create(scratch("store"), NULL), DURUM_E_STORE_BUSY);
    CHECK(strstr(durum_errormsg(), "store") != NULL);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
    store = durum_store_open_or_create(scratch("store"), NULL);
    CHECK(store != NULL);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
    store = durum_store_open_or_create(scratch("other"), NULL);
    CHECK(store != NULL);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
    CHECK_CODE(durum_store_close(NULL), DURUM_OK);
}

static void null_and_bad_options_are_refused(void) {
    CHECK(durum_errorcode() == DURUM_OK && durum_errormsg()[0] == '\0');
    CHECK_NULL(durum_store_open(NULL, NULL), DURUM_E_ARGUMENT);
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    options.domain = 99;
    CHECK_NULL(durum_store_create(scratch("store"), &options), DURUM_E_ARGUMENT);
    options.domain = DURUM_DOMAIN_DETECT;
    options.struct_size -= 8;
    CHECK_NULL(durum_store_create(scratch("store"), &options), DURUM_E_ARGUMENT);
    options.struct_size += 8;
    options.flags = 1u << 31;
    CHECK_NULL(durum_store_create(scratch("store"), &options), DURUM_E_ARGUMENT);
    options.flags = 0;
    options.mapping = DURUM_MAPPING_SIGNAL + 1;
    CHECK_NULL(durum_store_create(scratch("store"), &options), DURUM_E_ARGUMENT);
    options.mapping = DURUM_MAPPING_DEFAULT;
    options.base = 12345;
    CHECK_NULL(durum_store_create(scratch("store"), &options), DURUM_E_OPTIONS);
    CHECK_NULL(durum_store_create(scratch("missing/store"), NULL), DURUM_E_USER);
    CHECK(DURUM_E_GROUP(durum_errorcode()) == 2);

    fixture f = fixture_new();
    CHECK_NULL(durum_pool_open(f.store, NULL, NULL), DURUM_E_ARGUMENT);
    CHECK_NULL(durum_pool_open(f.store, "\xff\xfe", NULL), DURUM_E_ARGUMENT);
    durum_pool_options pool = DURUM_POOL_OPTIONS_INIT;
    pool.engine = 77;
    CHECK_NULL(durum_pool_create(f.store, "x", &pool), DURUM_E_ARGUMENT);
    pool.engine = DURUM_ENGINE_DEFAULT;
    pool.flags = 1u << 31;
    CHECK_NULL(durum_pool_create(f.store, "x", &pool), DURUM_E_ARGUMENT);
    pool.flags = 0;
    pool.root_puddle_size = 12345;
    CHECK_NULL(durum_pool_create(f.store, "x", &pool), DURUM_E_OPTIONS);
    CHECK_NULL(durum_pool_open(f.store, "x", NULL), DURUM_E_POOL_MISSING);
    fixture_close(&f);
}

static void a_null_handle_keeps_the_first_failure(void) {
    durum_store *store = durum_store_open(scratch("none"), NULL);
    durum_pool *pool = durum_pool_open_or_create(store, "pool", NULL);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root == NULL);
    CHECK_CODE(durum_errorcode(), DURUM_E_STORE_MISSING);
    CHECK(strstr(durum_errormsg(), "none") != NULL);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
    CHECK_CODE(durum_errorcode(), DURUM_E_STORE_MISSING);
}

static void a_null_handle_alone_is_an_argument_error(void) {
    CHECK_NULL(durum_pool_open(NULL, "pool", NULL), DURUM_E_ARGUMENT);
}

static void the_domain_is_told_and_can_be_chosen(void) {
    CHECK(durum_store_domain(NULL) == DURUM_DOMAIN_DETECT);
    static const uint32_t domains[] = {DURUM_DOMAIN_DRAM, DURUM_DOMAIN_FILE,
                                       DURUM_DOMAIN_EMULATED_STT_RAM, DURUM_DOMAIN_EMULATED_PCM};
    for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
        char name[16];
        snprintf(name, sizeof(name), "domain%u", (unsigned)domains[i]);
        durum_store_options options = DURUM_STORE_OPTIONS_INIT;
        options.domain = domains[i];
        durum_store *store = durum_store_create(scratch(name), &options);
        CHECK(store != NULL);
        CHECK(durum_store_domain(store) == domains[i]);
        durum_pool *pool = durum_pool_create(store, "pool", NULL);
        cell *root = DURUM_ROOT(pool, cell);
        CHECK(root != NULL);
        DURUM_TX_BEGIN(pool) {
            DURUM_TX_ADD(root);
            root->value = 40 + domains[i];
        }
        DURUM_TX_END
        CHECK_CODE(durum_errorcode(), DURUM_OK);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
        CHECK_CODE(durum_store_close(store), DURUM_OK);

        store = durum_store_open(scratch(name), &options);
        pool = durum_pool_open(store, "pool", NULL);
        root = DURUM_ROOT(pool, cell);
        CHECK(root != NULL && root->value == 40 + domains[i]);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
        CHECK_CODE(durum_store_close(store), DURUM_OK);
    }
}

static int thread_count(void) {
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    char line[256];
    int count = 0;
    while (fgets(line, sizeof(line), status) != NULL)
        (void)sscanf(line, "Threads: %d", &count);
    fclose(status);
    return count;
}

static void fill(durum_pool *pool, unsigned char *bytes, size_t size, int value) {
    DURUM_TX_BEGIN(pool) {
        CHECK(bytes[0] == value - 1 && bytes[size - 1] == value - 1);
        CHECK_CODE(durum_tx_add(bytes, size), DURUM_OK);
        memset(bytes, value, size);
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_OK);
}

static unsigned char *zeros(durum_pool *pool, cell *root, size_t size) {
    DURUM_TX_BEGIN(pool) {
        void *bytes = durum_malloc(pool, NULL, size);
        CHECK(bytes != NULL);
        memset(bytes, 0, size);
        DURUM_TX_ADD(root);
        root->next = (cell *)bytes;
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_OK);
    return (unsigned char *)root->next;
}

/* Changes 16 MiB twelve times, more than log and private memory may take, and counts the threads
 * there are then. */
static int threads_after_large_changes(const durum_store_options *options, const char *name) {
    enum { size = 16 << 20, step = 1 << 20 };
    durum_store *store = durum_store_create(scratch(name), options);
    CHECK(store != NULL);
    durum_pool_options pool_options = DURUM_POOL_OPTIONS_INIT;
    pool_options.engine = DURUM_ENGINE_SHADOW;
    durum_pool *pool = durum_pool_create(store, "pool", &pool_options);
    CHECK(pool != NULL);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root != NULL);
    unsigned char *bytes = zeros(pool, root, size);
    for (int round = 1; round <= 12; round++)
        for (size_t at = 0; at < size; at += step)
            fill(pool, bytes + at, step, round);
    int threads = thread_count();
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
    return threads;
}

static void logs_memory_and_threads_can_be_chosen(void) {
    int before = thread_count();
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    options.domain = DURUM_DOMAIN_FILE;
    options.log_max = 4 << 20;
    options.private_max = 2 << 20;
    options.flags = DURUM_STORE_NO_CHECKPOINT_THREAD;
    CHECK(threads_after_large_changes(&options, "without") == before);
    options.flags = 0;
    CHECK(threads_after_large_changes(&options, "with") == before + 1);
    CHECK(thread_count() == before);
}

static void a_program_may_be_watched(void) {
    int before = thread_count();
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    options.flags = DURUM_STORE_OBSERVE;
    durum_store *store = durum_store_create(scratch("watched"), &options);
    CHECK(store != NULL);
    CHECK(thread_count() == before + 1);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

static void a_store_may_have_a_small_space(void) {
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    options.base = UINT64_C(0x280000000000);
    options.space = 16 << 20;
    options.growth = 4 << 20;
    durum_store *store = durum_store_create(scratch("small"), &options);
    CHECK(store != NULL);
    durum_pool *pool = durum_pool_create(store, "pool", NULL);
    CHECK(pool != NULL);
    CHECK_CODE(durum_pool_reserve(pool, 12 << 20), DURUM_E_ADDRESSES_EXHAUSTED);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
    options.space = 1;
    CHECK_NULL(durum_store_create(scratch("odd"), &options), DURUM_E_OPTIONS);
}

static void room_is_made_ahead(void) {
    fixture f = fixture_new();
    CHECK_CODE(durum_pool_reserve(NULL, 1), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_reserve(f.pool, 32 << 20), DURUM_OK);
    CHECK_CODE(durum_pool_reserve(f.pool, UINT64_MAX), DURUM_E_STORAGE_FULL);
    fixture_close(&f);
}

static void pools_are_made_opened_and_removed(void) {
    fixture f = fixture_new();
    CHECK_NULL(durum_pool_create(f.store, "pool", NULL), DURUM_E_POOL_EXISTS);
    CHECK_NULL(durum_pool_create(f.store, "", NULL), DURUM_E_POOL_NAME);
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.engine = DURUM_ENGINE_HYBRID;
    options.root_puddle_size = 8 << 20;
    durum_pool *large = durum_pool_open_or_create(f.store, "large", &options);
    CHECK(large != NULL);
    CHECK(durum_root(large, NULL, 5 << 20) != NULL);
    durum_pool *again = durum_pool_open(f.store, "large", NULL);
    CHECK(again != NULL && again != large);
    CHECK_CODE(durum_pool_remove(f.store, "large"), DURUM_E_POOL_OPEN);
    CHECK_CODE(durum_pool_close(large), DURUM_OK);
    CHECK_CODE(durum_pool_remove(f.store, "large"), DURUM_E_POOL_OPEN);
    CHECK_CODE(durum_pool_close(again), DURUM_OK);
    CHECK_CODE(durum_pool_remove(f.store, "large"), DURUM_OK);
    CHECK_CODE(durum_pool_remove(f.store, "large"), DURUM_E_POOL_MISSING);
    CHECK_CODE(durum_pool_remove(f.store, NULL), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_close(NULL), DURUM_OK);
    fixture_close(&f);
}

static void a_pool_outlives_its_stores_handle(void) {
    fixture f = fixture_new();
    CHECK_CODE(durum_store_close(f.store), DURUM_OK);
    cell *root = DURUM_ROOT(f.pool, cell);
    CHECK(root != NULL);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(root);
        root->value = 3;
    }
    DURUM_TX_END
    CHECK_NULL(durum_store_open(scratch("store"), NULL), DURUM_E_STORE_BUSY);
    CHECK_CODE(durum_pool_close(f.pool), DURUM_OK);
    durum_store *store = durum_store_open(scratch("store"), NULL);
    CHECK(store != NULL);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

static void pools_of_every_engine_are_made(void) {
    fixture f = fixture_new();
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    const uint32_t engines[] = {DURUM_ENGINE_HYBRID, DURUM_ENGINE_TWIN, DURUM_ENGINE_SHADOW};
    const char *names[] = {"hybrid", "twin", "shadow"};
    for (int at = 0; at < 3; at++) {
        options.engine = engines[at];
        durum_pool *pool = durum_pool_create(f.store, names[at], &options);
        CHECK(pool != NULL);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    }
    fixture_close(&f);
}

static void two_stores_are_open_beside_each_other(void) {
    fixture f = fixture_new();
    durum_store *other = durum_store_create(scratch("other"), NULL);
    CHECK(other != NULL);
    durum_pool *pool = durum_pool_create(other, "pool", NULL);
    CHECK(pool != NULL);
    cell *mine = DURUM_ROOT(f.pool, cell);
    cell *theirs = DURUM_ROOT(pool, cell);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_begin(pool), DURUM_E_OTHER_STORE);
    CHECK_CODE(durum_tx_add(theirs, sizeof(*theirs)), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_add(mine, sizeof(*mine)), DURUM_OK);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(other), DURUM_OK);
    fixture_close(&f);
}

static void copy_of_store(const char *from, const char *to) {
    char command[1024];
    int length = snprintf(command, sizeof(command), "cp -r '%s'", scratch(from));
    snprintf(command + length, sizeof(command) - (size_t)length, " '%s'", scratch(to));
    CHECK(system(command) == 0);
}

// Both have the same addresses: the copy makes way, and its pointers lead to its own objects.
static void a_copy_is_open_beside_its_original(void) {
    fixture f = fixture_new();
    DURUM_TX_BEGIN(f.pool) {
        cell *root = DURUM_ROOT(f.pool, cell);
        cell *next = DURUM_NEW(f.pool, cell);
        next->value = 7;
        DURUM_TX_ADD(root);
        root->next = next;
    }
    DURUM_TX_END
    CHECK_CODE(durum_pool_close(f.pool), DURUM_OK);
    CHECK_CODE(durum_store_close(f.store), DURUM_OK);
    copy_of_store("store", "copy");
    f.store = durum_store_open(scratch("store"), NULL);
    durum_store *copy = durum_store_open(scratch("copy"), NULL);
    CHECK(f.store != NULL && copy != NULL);
    f.pool = durum_pool_open(f.store, "pool", NULL);
    durum_pool *pool = durum_pool_open(copy, "pool", NULL);
    CHECK(f.pool != NULL && pool != NULL);
    cell *mine = DURUM_ROOT(f.pool, cell), *theirs = DURUM_ROOT(pool, cell);
    CHECK(mine != theirs && mine->next != theirs->next);
    CHECK(mine->next->value == 7 && theirs->next->value == 7);
    DURUM_TX_BEGIN(pool) {
        DURUM_TX_ADD(theirs->next);
        theirs->next->value = 8;
    }
    DURUM_TX_END
    CHECK(mine->next->value == 7 && theirs->next->value == 8);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(copy), DURUM_OK);
    fixture_close(&f);
}

// Bytes without a type may hold pointers: nobody moves them unless the program says that they do
// not.
static void a_copy_with_plain_bytes_needs_a_promise(void) {
    fixture f = fixture_new();
    DURUM_TX_BEGIN(f.pool) {
        char *text = (char *)durum_malloc(f.pool, 0, 100);
        strcpy(text, "no pointers");
    }
    DURUM_TX_END
    CHECK_CODE(durum_pool_close(f.pool), DURUM_OK);
    CHECK_CODE(durum_store_close(f.store), DURUM_OK);
    copy_of_store("store", "copy");
    f.store = durum_store_open(scratch("store"), NULL);
    f.pool = durum_pool_open(f.store, "pool", NULL);
    durum_store *copy = durum_store_open(scratch("copy"), NULL);
    CHECK(f.pool != NULL && copy != NULL);
    CHECK_NULL(durum_pool_open(copy, "pool", NULL), DURUM_E_ADDRESS_CONFLICT);
    CHECK(strstr(durum_errormsg(), "an object without a type") != NULL);
    CHECK_CODE(durum_store_close(copy), DURUM_OK);
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    options.flags = DURUM_STORE_UNTYPED_HOLD_NO_POINTERS;
    copy = durum_store_open(scratch("copy"), &options);
    durum_pool *pool = durum_pool_open(copy, "pool", NULL);
    CHECK(pool != NULL);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(copy), DURUM_OK);
    fixture_close(&f);
}

static void a_pool_is_exported_and_imported(void) {
    fixture f = fixture_new();
    char place[4096];
    snprintf(place, sizeof place, "%s", scratch("pool.export"));
    DURUM_TX_BEGIN(f.pool) {
        char *text = (char *)durum_malloc(f.pool, 0, 100);
        strcpy(text, "no pointers");
    }
    DURUM_TX_END
    CHECK_CODE(durum_pool_export(f.store, "pool", place, 0), DURUM_E_POOL_OPEN);
    CHECK_CODE(durum_pool_close(f.pool), DURUM_OK);
    CHECK_CODE(durum_pool_export(f.store, "pool", place, 1U << 31), DURUM_E_OPTIONS);
    CHECK_CODE(durum_pool_export(f.store, "none", place, 0), DURUM_E_POOL_MISSING);
    CHECK_CODE(durum_pool_export(f.store, "pool", NULL, 0), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_export(f.store, "pool", place, DURUM_EXPORT_WITH_REFERENCED), DURUM_OK);
    CHECK_CODE(durum_pool_export(f.store, "pool", place, 0), DURUM_E_SHIPPING);
    CHECK_CODE(durum_pool_import(f.store, place, NULL, 0), DURUM_E_POOL_EXISTS);
    CHECK_CODE(durum_pool_import(f.store, place, "a/b", 0), DURUM_E_POOL_NAME);
    CHECK_CODE(durum_pool_import(f.store, place, "copy", 0), DURUM_E_SHIPPING);
    CHECK(strstr(durum_errormsg(), "unknown type") != NULL);
    uint32_t flags = DURUM_IMPORT_UNTYPED_HOLD_NO_POINTERS | DURUM_IMPORT_VERIFY;
    CHECK_CODE(durum_pool_import(f.store, place, "copy", flags | DURUM_IMPORT_COPY), DURUM_OK);
    CHECK_CODE(durum_pool_import(f.store, place, "moved", flags), DURUM_OK);
    CHECK(durum_pool_import(f.store, place, "again", flags) != DURUM_OK);
    const uint32_t forms[] = {DURUM_EXPORT_ARCHIVE, DURUM_EXPORT_COMPRESSED};
    const char *names[] = {"pool", "copy", "moved", "archived", "compressed"};
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(durum_pool_export(f.store, "pool", place, forms[i]), DURUM_OK);
        CHECK_CODE(durum_pool_import(f.store, place, names[3 + i], flags), DURUM_OK);
        CHECK(unlink(place) == 0);
    }
    void *joined = NULL;
    CHECK_CODE(durum_pool_import_into(f.store, place, "copy", flags, &joined), DURUM_E_DAMAGED);
    CHECK_CODE(durum_pool_export(f.store, "pool", place, 0), DURUM_OK);
    CHECK_CODE(durum_pool_import_into(f.store, place, NULL, flags, &joined), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_import_into(f.store, place, "none", flags, NULL), DURUM_E_POOL_MISSING);
    CHECK_CODE(durum_pool_import_into(f.store, place, "copy", flags, &joined), DURUM_OK);
    for (int i = 0; i < 5; i++) {
        durum_pool *pool = durum_pool_open(f.store, names[i], NULL);
        CHECK(pool != NULL);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    }
    f.pool = durum_pool_open(f.store, "pool", NULL);
    fixture_close(&f);
}

static void pools_in_use_are_shown_as_of_one_moment(void) {
    fixture f = fixture_new();
    char place[4096];
    snprintf(place, sizeof place, "%s", scratch("pool.snapshot"));
    durum_pool *other = durum_pool_create(f.store, "other", NULL);
    CHECK(other != NULL);
    durum_pool *both[] = {f.pool, other};
    CHECK_CODE(durum_pool_snapshot(both, 0, place, 0, 1000), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_snapshot(NULL, 2, place, 0, 1000), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_snapshot(both, 2, NULL, 0, 1000), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_snapshot(both, 2, place, DURUM_EXPORT_WITH_REFERENCED, 1000),
               DURUM_E_OPTIONS);
    DURUM_TX_BEGIN(f.pool) {
        CHECK_CODE(durum_pool_snapshot(both, 2, place, 0, 1000), DURUM_E_SHIPPING);
    }
    DURUM_TX_END
    CHECK_CODE(durum_pool_snapshot(both, 2, place, 0, 1000), DURUM_OK);
    CHECK_CODE(durum_pool_snapshot(both, 2, place, 0, 1000), DURUM_E_SHIPPING);
    durum_store *store = durum_store_create(scratch("backup"), NULL);
    CHECK(store != NULL);
    CHECK_CODE(durum_pool_import(store, place, NULL, 0), DURUM_OK);
    durum_pool *pool = durum_pool_open(store, "other", NULL);
    CHECK(pool != NULL);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
    CHECK_CODE(durum_pool_close(other), DURUM_OK);
    fixture_close(&f);
}

static void a_foreign_and_a_damaged_store_are_refused(void) {
    fixture f = fixture_new();
    fixture_close(&f);
    int file = open(scratch("store/durum.store"), O_WRONLY | O_TRUNC);
    CHECK(file >= 0);
    CHECK(write(file, "not a store at all, whatever it says\n", 37) == 37);
    close(file);
    durum_store *store = durum_store_open(scratch("store"), NULL);
    CHECK(store == NULL);
    CHECK(durum_errorcode() == DURUM_E_FORMAT || durum_errorcode() == DURUM_E_DAMAGED);
    CHECK(strstr(durum_errormsg(), "durum.store") != NULL);
}

static void the_version_is_a_string(void) {
    CHECK(strchr(durum_version(), '.') != NULL);
}

const test store_tests[] = {
    {"a_store_is_made_once_and_opened_again", a_store_is_made_once_and_opened_again},
    {"null_and_bad_options_are_refused", null_and_bad_options_are_refused},
    {"a_null_handle_keeps_the_first_failure", a_null_handle_keeps_the_first_failure},
    {"a_null_handle_alone_is_an_argument_error", a_null_handle_alone_is_an_argument_error},
    {"the_domain_is_told_and_can_be_chosen", the_domain_is_told_and_can_be_chosen},
    {"logs_memory_and_threads_can_be_chosen", logs_memory_and_threads_can_be_chosen},
    {"a_program_may_be_watched", a_program_may_be_watched},
    {"a_store_may_have_a_small_space", a_store_may_have_a_small_space},
    {"room_is_made_ahead", room_is_made_ahead},
    {"pools_are_made_opened_and_removed", pools_are_made_opened_and_removed},
    {"a_pool_outlives_its_stores_handle", a_pool_outlives_its_stores_handle},
    {"pools_of_every_engine_are_made", pools_of_every_engine_are_made},
    {"two_stores_are_open_beside_each_other", two_stores_are_open_beside_each_other},
    {"a_copy_is_open_beside_its_original", a_copy_is_open_beside_its_original},
    {"a_copy_with_plain_bytes_needs_a_promise", a_copy_with_plain_bytes_needs_a_promise},
    {"a_pool_is_exported_and_imported", a_pool_is_exported_and_imported},
    {"pools_in_use_are_shown_as_of_one_moment", pools_in_use_are_shown_as_of_one_moment},
    {"a_foreign_and_a_damaged_store_are_refused", a_foreign_and_a_damaged_store_are_refused},
    {"the_version_is_a_string", the_version_is_a_string},
    {NULL, NULL},
};
