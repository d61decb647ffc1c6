/* Transactions by plain calls. */
#include "check.h"
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static void nothing_works_without_a_transaction(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    uint64_t value = 1;
    CHECK(durum_tx_level() == 0);
    CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_E_NO_TRANSACTION);
    CHECK_CODE(durum_tx_clobber(root, sizeof(*root)), DURUM_E_NO_TRANSACTION);
    CHECK_CODE(durum_tx_redo_set(root, &value, sizeof(value)), DURUM_E_NO_TRANSACTION);
    CHECK_CODE(durum_tx_volatile(&value, sizeof(value)), DURUM_E_NO_TRANSACTION);
    CHECK_CODE(durum_tx_commit(), DURUM_E_NO_TRANSACTION);
    CHECK_CODE(durum_tx_rollback(), DURUM_E_NO_TRANSACTION);
    CHECK_CODE(durum_tx_abort(), DURUM_E_NO_TRANSACTION);
    fixture_close(&f);
}

static void a_commit_keeps_and_a_rollback_restores(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK(durum_tx_level() == 1);
    CHECK_CODE(durum_tx_add(&root->value, sizeof(root->value)), DURUM_OK);
    root->value = 1;
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK(durum_tx_level() == 0 && root->value == 1);

    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
    root->value = 2;
    root->other = 2;
    CHECK_CODE(durum_tx_rollback(), DURUM_OK);
    CHECK(root->value == 1 && root->other == 0);
    fixture_close(&f);
}

static void redo_sets_show_after_the_commit_only(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    uint64_t value = 5;
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_redo_set(&root->value, &value, sizeof(value)), DURUM_OK);
    value = 6; /* copied before */
    CHECK(root->value == 0);
    CHECK_CODE(durum_tx_add(&root->value, sizeof(value)), DURUM_E_PENDING_SET);
    CHECK_CODE(durum_tx_redo_set(&root->value, NULL, 8), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_tx_redo_set(&value, &value, 8), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK(root->value == 5);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_redo_set(&root->value, &value, sizeof(value)), DURUM_OK);
    CHECK_CODE(durum_tx_rollback(), DURUM_OK);
    CHECK(root->value == 5);
    fixture_close(&f);
}

static void clobbered_ranges_are_kept_by_a_commit(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_clobber(&root->value, sizeof(root->value)), DURUM_OK);
    root->value = 8;
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK(root->value == 8);
    fixture_close(&f);
}

static void ranges_are_announced_at_once(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    const struct durum_range both[] = {{&root->value, sizeof(root->value)},
                                       {&root->other, sizeof(root->other)}};
    CHECK_CODE(durum_tx_add_all(both, 2), DURUM_E_NO_TRANSACTION);
    for (int commits = 0; commits < 2; commits++) {
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        CHECK_CODE(durum_tx_add_all(both, 2), DURUM_OK);
        CHECK_CODE(durum_tx_add_all(NULL, 0), DURUM_OK);
        root->value = 3;
        root->other = 4;
        CHECK_CODE(commits ? durum_tx_commit() : durum_tx_rollback(), DURUM_OK);
        CHECK(root->value == (commits ? 3 : 0) && root->other == (commits ? 4 : 0));
    }
    int local = 0;
    const struct durum_range wrong[] = {both[0], {&local, sizeof(local)}, both[1]};
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_add_all(NULL, 1), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_tx_add_all(wrong, 3), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    fixture_close(&f);
}

static void volatile_memory_comes_back_on_abort_only(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    uint64_t cached = 1;
    /* Alone in its transaction, and beside a change. */
    for (int with_change = 0; with_change < 2; with_change++) {
        cached = 1;
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        CHECK_CODE(durum_tx_volatile(&cached, sizeof(cached)), DURUM_OK);
        cached = 2;
        if (with_change) {
            CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
        }
        CHECK_CODE(durum_tx_rollback(), DURUM_OK);
        CHECK(cached == 1);

        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        CHECK_CODE(durum_tx_volatile(&cached, sizeof(cached)), DURUM_OK);
        cached = 3;
        if (with_change) {
            CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
        }
        CHECK_CODE(durum_tx_commit(), DURUM_OK);
        CHECK(cached == 3);

        /* What was registered before the commit is forgotten. */
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
        CHECK_CODE(durum_tx_rollback(), DURUM_OK);
        CHECK(cached == 3);
    }
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_volatile(NULL, 8), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    fixture_close(&f);
}

static void levels_are_one_transaction(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
    root->value = 1;
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK(durum_tx_level() == 2);
    root->other = 1;
    CHECK_CODE(durum_tx_rollback(), DURUM_OK);
    CHECK(durum_tx_level() == 1);
    CHECK_CODE(durum_tx_commit(), DURUM_E_ABORTED);
    CHECK(durum_tx_level() == 0 && root->value == 0 && root->other == 0);
    fixture_close(&f);
}

static void an_abort_without_a_block_dooms_the_transaction(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
    root->value = 1;
    CHECK_CODE(durum_tx_abort(), DURUM_E_ABORTED);
    CHECK(durum_tx_level() == 1);
    CHECK_CODE(durum_tx_commit(), DURUM_E_ABORTED);
    CHECK(durum_tx_level() == 0 && root->value == 0);
    fixture_close(&f);
}

static void addresses_outside_of_pools_are_refused(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    int local = 0;
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_add(&local, sizeof(local)), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_add(NULL, 8), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_add(root, (size_t)1 << 40), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_clobber(&local, sizeof(local)), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_add(root, 0), DURUM_OK);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK_CODE(durum_tx_begin(NULL), DURUM_E_ARGUMENT);
    fixture_close(&f);
}

static void a_pool_is_not_closed_under_its_transaction(void) {
    fixture f = fixture_new();
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_pool_close(f.pool), DURUM_E_IN_TRANSACTION);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    fixture_close(&f);
}

static void one_transaction_changes_several_pools(void) {
    fixture f = fixture_new();
    durum_pool *second = durum_pool_create(f.store, "second", NULL);
    cell *one = DURUM_ROOT(f.pool, cell);
    cell *two = DURUM_ROOT(second, cell);
    CHECK(one != NULL && two != NULL);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_add(one, sizeof(*one)), DURUM_OK);
    CHECK_CODE(durum_tx_add(two, sizeof(*two)), DURUM_OK);
    one->value = two->value = 1;
    two->next = (cell *)durum_malloc_zeroed(second, DURUM_TYPE_OF(cell), sizeof(cell));
    CHECK(two->next != NULL);
    CHECK_CODE(durum_tx_rollback(), DURUM_OK);
    CHECK(one->value == 0 && two->value == 0 && two->next == NULL);
    CHECK_CODE(durum_tx_begin(second), DURUM_OK);
    CHECK_CODE(durum_tx_add(one, sizeof(*one)), DURUM_OK);
    CHECK_CODE(durum_tx_add(two, sizeof(*two)), DURUM_OK);
    one->value = two->value = 2;
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK(one->value == 2 && two->value == 2);
    CHECK_CODE(durum_pool_close(second), DURUM_OK);
    fixture_close(&f);
}

static const uint32_t engines[] = {DURUM_ENGINE_HYBRID, DURUM_ENGINE_TWIN, DURUM_ENGINE_SHADOW};
enum { ENGINES = sizeof(engines) / sizeof(engines[0]) };

/* A pool that is checked, of one of the engines. */
static durum_pool *checked_pool(durum_store *store, int engine) {
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.flags = DURUM_POOL_CHECK_STORES;
    options.engine = engines[engine];
    char name[] = "pool0";
    name[4] = (char)('0' + engine);
    durum_pool *pool = durum_pool_create(store, name, &options);
    CHECK(pool != NULL);
    return pool;
}

static void the_checker_finds_stores_that_nobody_announced(void) {
    durum_store *store = durum_store_open_or_create(store_path(), NULL);
    for (int engine = 0; engine < ENGINES; engine++) {
        durum_pool *pool = checked_pool(store, engine);
        cell *root = DURUM_ROOT(pool, cell);
        CHECK(root != NULL);
        CHECK_CODE(durum_tx_begin(pool), DURUM_OK);
        CHECK_CODE(durum_tx_add(&root->value, sizeof(root->value)), DURUM_OK);
        root->value = 1;
        root->other = 1;
        CHECK_CODE(durum_tx_commit(), DURUM_E_UNANNOUNCED);
        CHECK(strstr(durum_errormsg(), "other") != NULL);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    }
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

static void the_checker_looks_where_nothing_was_announced(void) {
    durum_store *store = durum_store_open_or_create(store_path(), NULL);
    for (int engine = 0; engine < ENGINES; engine++) {
        durum_pool *pool = checked_pool(store, engine);
        cell *root = DURUM_ROOT(pool, cell);
        CHECK(root != NULL);
        DURUM_TX_BEGIN(pool) {
            root->value = 1;
        }
        DURUM_TX_END
        CHECK_CODE(durum_errorcode(), DURUM_E_UNANNOUNCED);
        CHECK(strstr(durum_errormsg(), "\"value\"") != NULL);
        DURUM_TX_BEGIN(pool) {
            CHECK(root->value == 1);
        }
        DURUM_TX_END
        CHECK_CODE(durum_errorcode(), DURUM_OK);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    }
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

static void a_pointer_out_of_the_store_does_not_commit(void) {
    durum_store *store = durum_store_open_or_create(store_path(), NULL);
    cell outside;
    for (int engine = 0; engine < ENGINES; engine++) {
        durum_pool *pool = checked_pool(store, engine);
        cell *root = DURUM_ROOT(pool, cell);
        CHECK(root != NULL);
        for (int way = 0; way < 3; way++) {
            DURUM_TX_BEGIN(pool) {
                if (way == 0) {
                    DURUM_TX_ADD(root);
                    root->next = &outside;
                } else if (way == 1) {
                    DURUM_TX_REDO_SET(&root->next, &outside);
                } else {
                    cell *made = DURUM_TX_NEW(pool, cell);
                    made->next = &outside;
                }
            }
            DURUM_TX_END
            CHECK_CODE(durum_errorcode(), DURUM_E_POINTER_OUTSIDE);
            CHECK(strstr(durum_errormsg(), "\"next\" of a \"cell\"") != NULL);
            CHECK(root->next == NULL);
        }
        DURUM_TX_BEGIN(pool) {
            DURUM_TX_ADD(root);
            root->next = root;
        }
        DURUM_TX_END
        CHECK_CODE(durum_errorcode(), DURUM_OK);
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    }
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

/* In a process that ends without closing anything: what it had buffered after its last sync is
 * lost. */
static void buffer_and_die(void) {
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    options.buffered_window_us = 3600000000u;
    durum_store *store = durum_store_open_or_create(store_path(), &options);
    durum_pool_options pool_options = DURUM_POOL_OPTIONS_INIT;
    pool_options.engine = DURUM_ENGINE_SHADOW;
    durum_pool *pool = durum_pool_create(store, "pool", &pool_options);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root != NULL);
    CHECK_CODE(durum_tx_begin_with(pool, 2), DURUM_E_ARGUMENT);
    CHECK(durum_tx_level() == 0);
    CHECK_CODE(durum_tx_begin_with(pool, DURUM_BUFFERED), DURUM_OK);
    CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
    root->value = 1;
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK_CODE(durum_pool_sync(pool), DURUM_OK);
    DURUM_TX_BEGIN_WITH(pool, DURUM_BUFFERED) {
        DURUM_TX_ADD(root);
        root->value = 2;
        root->other = 2;
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_OK);
    CHECK(root->value == 2);
    _exit(0);
}

static void a_buffered_transaction_is_durable_after_a_sync(void) {
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        buffer_and_die();
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (uint64_t round = 1; round < 3; round++) {
        durum_store *store = durum_store_open(store_path(), NULL);
        durum_pool *pool = durum_pool_open(store, "pool", NULL);
        cell *root = DURUM_ROOT(pool, cell);
        CHECK(root != NULL && root->value == round && root->other == 0);
        CHECK_CODE(durum_pool_sync(pool), DURUM_OK);
        DURUM_TX_BEGIN_WITH(pool, DURUM_BUFFERED) {
            DURUM_TX_ADD(root);
            root->value++;
        }
        DURUM_TX_END
        /* Closing keeps what waits. */
        CHECK_CODE(durum_pool_close(pool), DURUM_OK);
        CHECK_CODE(durum_store_close(store), DURUM_OK);
    }
    CHECK_CODE(durum_pool_sync(NULL), DURUM_E_ARGUMENT);
}

static void a_section_finds_what_changed(void) {
    fixture f = fixture_new();
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.engine = DURUM_ENGINE_HYBRID;
    durum_pool *hybrid = durum_pool_create(f.store, "hybrid", &options);
    options.engine = DURUM_ENGINE_SHADOW;
    durum_pool *pool = durum_pool_create(f.store, "shadow", &options);
    CHECK(hybrid != NULL && pool != NULL);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root != NULL);
    CHECK_CODE(durum_section_begin(hybrid), DURUM_E_SECTION_ENGINE);
    CHECK_CODE(durum_tx_begin(pool), DURUM_OK);
    CHECK_CODE(durum_section_begin(pool), DURUM_E_IN_TRANSACTION);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);

    CHECK_CODE(durum_section_begin(pool), DURUM_OK);
    CHECK(durum_tx_level() == 1);
    root->value = 1;
    root->next = DURUM_NEW(pool, cell);
    CHECK(root->next != NULL);
    root->next->other = 2;
    CHECK_CODE(durum_section_begin(pool), DURUM_OK);
    root->other = 3;
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);

    CHECK_CODE(durum_section_begin(pool), DURUM_OK);
    memset(root, 0xff, sizeof(*root));
    CHECK_CODE(durum_tx_rollback(), DURUM_OK);
    CHECK(root->value == 1 && root->other == 3);

    /* Private pages go away with the pool. */
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    pool = durum_pool_open(f.store, "shadow", &options);
    CHECK(pool != NULL && DURUM_ROOT(pool, cell) == root);
    CHECK(root->value == 1 && root->other == 3 && root->next->other == 2);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_pool_close(hybrid), DURUM_OK);
    fixture_close(&f);
}

static void sections_track_pages_as_they_are_told(void) {
    fixture f = fixture_new();
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.engine = DURUM_ENGINE_SHADOW;
    options.flags = DURUM_POOL_TRACK_USERFAULTFD | DURUM_POOL_TRACK_MPROTECT;
    CHECK_NULL(durum_pool_create(f.store, "tracked", &options), DURUM_E_ARGUMENT);
    options.flags = DURUM_POOL_TRACK_MPROTECT;
    durum_pool *pool = durum_pool_create(f.store, "tracked", &options);
    CHECK(pool != NULL);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root != NULL);
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "abcdefgh", 8) == 8);
    CHECK_CODE(durum_section_begin(pool), DURUM_OK);
    /* The system does not raise the signal that would note the page. */
    CHECK(read(ends[0], &root->value, 8) == -1 && errno == EFAULT);
    root->value = 1;
    CHECK(read(ends[0], &root->value, 8) == 8);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    close(ends[0]);
    close(ends[1]);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    fixture_close(&f);
}

static void without_buffering_every_commit_is_durable(void) {
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    options.domain = DURUM_DOMAIN_DRAM;
    options.flags = DURUM_STORE_NO_BUFFERING;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        durum_store *store = durum_store_open_or_create(store_path(), &options);
        durum_pool_options shadow = DURUM_POOL_OPTIONS_INIT;
        shadow.engine = DURUM_ENGINE_SHADOW;
        durum_pool *pool = durum_pool_create(store, "pool", &shadow);
        cell *root = DURUM_ROOT(pool, cell);
        DURUM_TX_BEGIN_WITH(pool, DURUM_BUFFERED) {
            DURUM_TX_ADD(root);
            root->value = 7;
        }
        DURUM_TX_END
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    durum_store *store = durum_store_open(store_path(), NULL);
    durum_pool *pool = durum_pool_open(store, "pool", NULL);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root != NULL && root->value == 7);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

static void a_transaction_in_flight_is_durable_when_it_was_waited_for(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    uint64_t numbers[8];
    CHECK_CODE(durum_tx_commit_begin(&numbers[0]), DURUM_E_NO_TRANSACTION);
    for (uint64_t at = 0; at < 8; at++) {
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        CHECK_CODE(durum_tx_add(&root->value, sizeof(root->value)), DURUM_OK);
        root->value = at + 1;
        CHECK_CODE(durum_tx_commit_begin(NULL), DURUM_E_ARGUMENT);
        CHECK(durum_tx_level() == 1);
        CHECK_CODE(durum_tx_commit_begin(&numbers[at]), DURUM_OK);
        CHECK(durum_tx_level() == 0 && durum_errorcode() == DURUM_OK);
    }
    for (int at = 7; at >= 0; at -= 2) {
        CHECK_CODE(durum_tx_wait(f.pool, numbers[at]), DURUM_OK);
    }
    CHECK_CODE(durum_tx_wait(f.pool, 0), DURUM_OK);
    CHECK_CODE(durum_tx_wait(NULL, 0), DURUM_E_ARGUMENT);
    DURUM_TX_BEGIN(f.pool) {
        CHECK_CODE(durum_tx_commit_begin(&numbers[0]), DURUM_E_UNBALANCED);
        /* An inner level is a level. */
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        DURUM_TX_ADD(&root->other);
        root->other = 9;
        CHECK_CODE(durum_tx_commit_begin(&numbers[0]), DURUM_OK);
        CHECK(numbers[0] == 0);
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_OK);
    CHECK(root->value == 8 && root->other == 9);
    fixture_close(&f);
}

const test transaction_tests[] = {
    {"a_transaction_in_flight_is_durable_when_it_was_waited_for",
     a_transaction_in_flight_is_durable_when_it_was_waited_for},
    {"a_section_finds_what_changed", a_section_finds_what_changed},
    {"sections_track_pages_as_they_are_told", sections_track_pages_as_they_are_told},
    {"without_buffering_every_commit_is_durable", without_buffering_every_commit_is_durable},
    {"nothing_works_without_a_transaction", nothing_works_without_a_transaction},
    {"a_commit_keeps_and_a_rollback_restores", a_commit_keeps_and_a_rollback_restores},
    {"redo_sets_show_after_the_commit_only", redo_sets_show_after_the_commit_only},
    {"clobbered_ranges_are_kept_by_a_commit", clobbered_ranges_are_kept_by_a_commit},
    {"ranges_are_announced_at_once", ranges_are_announced_at_once},
    {"volatile_memory_comes_back_on_abort_only", volatile_memory_comes_back_on_abort_only},
    {"levels_are_one_transaction", levels_are_one_transaction},
    {"an_abort_without_a_block_dooms_the_transaction",
     an_abort_without_a_block_dooms_the_transaction},
    {"addresses_outside_of_pools_are_refused", addresses_outside_of_pools_are_refused},
    {"a_pool_is_not_closed_under_its_transaction", a_pool_is_not_closed_under_its_transaction},
    {"one_transaction_changes_several_pools", one_transaction_changes_several_pools},
    {"the_checker_finds_stores_that_nobody_announced",
     the_checker_finds_stores_that_nobody_announced},
    {"a_pointer_out_of_the_store_does_not_commit", a_pointer_out_of_the_store_does_not_commit},
    {"the_checker_looks_where_nothing_was_announced",
     the_checker_looks_where_nothing_was_announced},
    {"a_buffered_transaction_is_durable_after_a_sync",
     a_buffered_transaction_is_durable_after_a_sync},
    {NULL, NULL},
};
