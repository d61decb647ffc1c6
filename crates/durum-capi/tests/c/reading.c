/* Pools that are open for reading only. */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static durum_pool_options reading(void) {
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.flags = DURUM_POOL_READ_ONLY;
    return options;
}

/* A new pool, whose root holds 1 and leads to a cell with 2. */
static void make(durum_store *store, const char *name, uint32_t engine) {
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.engine = engine;
    durum_pool *pool = durum_pool_create(store, name, &options);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root != NULL);
    DURUM_TX_BEGIN(pool) {
        cell *next = DURUM_NEW(pool, cell);
        next->value = 2;
        DURUM_TX_ADD(root);
        root->value = 1;
        root->next = next;
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_OK);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
}

/* A store with the pools "pool" and "other". */
static durum_store *make_pools(uint32_t engine) {
    durum_store *store = durum_store_open_or_create(store_path(), NULL);
    CHECK(store != NULL);
    make(store, "pool", engine);
    make(store, "other", engine);
    return store;
}

static int has_run;

static int looks(void *root) {
    has_run = 1;
    return ((cell *)root)->value == 1 ? DURUM_OK : DURUM_E_CALLER;
}

static int looks_at_copy(const durum_copy *copy, void *root) {
    (void)copy;
    return looks(root);
}

static void check_refused(durum_pool *pool, cell *root) {
    has_run = 0;
    DURUM_TX_BEGIN(pool) {
        has_run = 1;
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_E_READ_ONLY);
    CHECK(strstr(durum_errormsg(), "reading only") != NULL);
    CHECK_CODE(durum_tx_begin(pool), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_section_begin(pool), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_update_begin(pool), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_pool_update(pool, looks, root), DURUM_E_READ_ONLY);
    CHECK(!has_run && durum_tx_level() == 0);
    CHECK_CODE(durum_pool_reserve(pool, 1), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_persist(root, 8), DURUM_E_READ_ONLY);
    CHECK_NULL(durum_malloc(pool, DURUM_TYPE_OF(cell), sizeof(cell)), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_free(root->next), DURUM_E_READ_ONLY);
}

/* What a transaction on `other` can do to it: nothing. */
static void check_refused_inside(durum_pool *other, durum_pool *pool, cell *root) {
    uint64_t value = 9;
    CHECK_CODE(durum_tx_begin(other), DURUM_OK);
    CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_tx_redo_set(&root->value, &value, sizeof(value)), DURUM_E_READ_ONLY);
    CHECK_NULL(durum_malloc(pool, NULL, 8), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_free(root->next), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_tx_begin(pool), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
}

static void a_store_ends_the_process(cell *root) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        *(volatile uint64_t *)&root->value = 9;
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    /* A sanitizer's handler says so, and exits. */
    CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) != 0);
}

static void a_pool_that_is_only_read_is_not_changed(void) {
    static const uint32_t engines[] = {DURUM_ENGINE_HYBRID, DURUM_ENGINE_TWIN, DURUM_ENGINE_SHADOW};
    durum_store *store = durum_store_open_or_create(store_path(), NULL);
    CHECK(store != NULL);
    for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
        char name[16], other_name[16];
        snprintf(name, sizeof(name), "pool%u", (unsigned)i);
        snprintf(other_name, sizeof(other_name), "other%u", (unsigned)i);
        make(store, name, engines[i]);
        make(store, other_name, engines[i]);
        durum_pool_options options = reading();
        options.engine = engines[i];
        if (engines[i] == DURUM_ENGINE_TWIN)
            options.flags |= DURUM_POOL_LEFT_RIGHT;
        durum_pool *pool = durum_pool_open(store, name, &options);
        cell *root = DURUM_ROOT(pool, cell);
        CHECK(root != NULL && root->value == 1 && root->next->value == 2);
        CHECK_CODE(durum_pool_read(pool, looks, root), DURUM_OK);
        CHECK_CODE(durum_pool_read_copy(pool, looks_at_copy, root),
                   engines[i] == DURUM_ENGINE_TWIN ? DURUM_OK : DURUM_E_NO_COPIES);
        check_refused(pool, root);
        durum_pool *other = durum_pool_open(store, other_name, NULL);
        CHECK(other != NULL);
        check_refused_inside(other, pool, root);
        a_store_ends_the_process(root);
        CHECK(root->value == 1 && root->next->value == 2);
        CHECK_CODE(durum_pool_close(other), DURUM_OK);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
        /* Who writes it goes on with what was there. */
        pool = durum_pool_open(store, name, NULL);
        CHECK(DURUM_ROOT(pool, cell) == root && root->value == 1);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    }
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

static void a_log_cannot_name_it(void) {
    durum_store *store = make_pools(DURUM_ENGINE_HYBRID);
    durum_pool_options options = reading();
    durum_pool *pool = durum_pool_open(store, "pool", &options);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root != NULL);
    durum_log *log = durum_log_open(store);
    CHECK(log != NULL);
    uint64_t value = 9;
    CHECK_CODE(durum_log_append(log, &root->value, &value, sizeof(value), DURUM_SEQUENCE_REDO, 0),
               DURUM_E_READ_ONLY);
    CHECK_CODE(durum_log_close(log), DURUM_OK);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

/* A type that no pool here has. */
typedef struct stranger {
    uint64_t value;
} stranger;
DURUM_TYPE(stranger, DURUM_FIELD(value))

static void what_is_not_there_is_not_made(void) {
    durum_store *store = make_pools(DURUM_ENGINE_DEFAULT);
    durum_pool_options options = reading();
    CHECK_NULL(durum_pool_create(store, "third", &options), DURUM_E_READ_ONLY);
    CHECK_NULL(durum_pool_open_or_create(store, "third", &options), DURUM_E_POOL_MISSING);
    CHECK_NULL(durum_pool_open(store, "third", &options), DURUM_E_POOL_MISSING);
    durum_pool *pool = durum_pool_create(store, "third", NULL);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    pool = durum_pool_open_or_create(store, "third", &options);
    CHECK(pool != NULL);
    CHECK_NULL(DURUM_ROOT(pool, stranger), DURUM_E_READ_ONLY);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

static void a_pool_is_read_or_written(void) {
    durum_store *store = make_pools(DURUM_ENGINE_DEFAULT);
    durum_pool_options options = reading();
    durum_pool *pool = durum_pool_open(store, "pool", &options);
    CHECK(pool != NULL);
    CHECK_NULL(durum_pool_open(store, "pool", NULL), DURUM_E_POOL_OPEN);
    durum_pool *again = durum_pool_open(store, "pool", &options);
    CHECK(again != NULL);
    CHECK_CODE(durum_pool_close(again), DURUM_OK);
    if (is_served()) {
        /* Another client of the service, as another program would be. */
        durum_store *second = durum_store_open(store_path(), NULL);
        CHECK_NULL(durum_pool_open(second, "pool", NULL), DURUM_E_POOL_BUSY);
        durum_pool *other = durum_pool_open(second, "other", NULL);
        CHECK(other != NULL);
        CHECK_NULL(durum_pool_open(store, "other", &options), DURUM_E_POOL_BUSY);
        CHECK_CODE(durum_pool_close(other), DURUM_OK);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
        pool = durum_pool_open(second, "pool", NULL);
        CHECK(pool != NULL);
        CHECK_CODE(durum_store_close(second), DURUM_OK);
    }
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

/* A program that reads the root at the address where this one has it, says what it is, and stays
 * until its `end` closes. */
static pid_t reader(cell *root, int said, int end, int others_end) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(others_end);
        durum_store *store = durum_store_open(store_path(), NULL);
        durum_pool_options options = reading();
        durum_pool *pool = durum_pool_open(store, "pool", &options);
        CHECK(DURUM_ROOT(pool, cell) == root);
        char value = (char)root->next->value;
        CHECK(write(said, &value, 1) == 1);
        close(said);
        CHECK(read(end, &value, 1) == 0);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
        CHECK_CODE(durum_store_close(store), DURUM_OK);
        exit(0);
    }
    return child;
}

static void programs_read_a_pool_at_the_same_time(void) {
    if (!is_served())
        return;
    durum_store *store = make_pools(DURUM_ENGINE_DEFAULT);
    durum_pool *pool = durum_pool_open(store, "pool", NULL);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
    int said[2], end[2];
    CHECK(pipe(said) == 0 && pipe(end) == 0);
    pid_t readers[2];
    for (int i = 0; i < 2; i++)
        readers[i] = reader(root, said[1], end[0], end[1]);
    /* So that one that has failed is not waited for. */
    close(said[1]);
    char values[2];
    /* The first one has not ended when the second one says it. */
    CHECK(read(said[0], &values[0], 1) == 1 && read(said[0], &values[1], 1) == 1);
    CHECK(values[0] == 2 && values[1] == 2);
    close(end[1]);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        CHECK(waitpid(readers[i], &status, 0) == readers[i] && status == 0);
    }
}

const test reading_tests[] = {
    {"a_pool_that_is_only_read_is_not_changed", a_pool_that_is_only_read_is_not_changed},
    {"a_log_cannot_name_it", a_log_cannot_name_it},
    {"what_is_not_there_is_not_made", what_is_not_there_is_not_made},
    {"a_pool_is_read_or_written", a_pool_is_read_or_written},
    {"programs_read_a_pool_at_the_same_time", programs_read_a_pool_at_the_same_time},
    {NULL, NULL},
};
