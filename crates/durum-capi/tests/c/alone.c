/* Updates of a thread that meets no other one. */
#include "work.h"
#include <pthread.h>

static void *add_once(void *arg) {
    CHECK_CODE(durum_pool_update(((work *)arg)->pool, add_to_both, arg), DURUM_OK);
    return NULL;
}

/* How many updates it takes until the thread is taken for alone, and in one that has begun so; or
 * so many, where the system has no membarrier. */
enum { UPDATES_MAX = 10000 };
static int updates_until_alone(work *w) {
    int updates = 0;
    while (durum_update_begin_alone(w->pool) != DURUM_OK && updates < UPDATES_MAX) {
        CHECK_CODE(durum_pool_update(w->pool, add_to_both, w), DURUM_OK);
        updates++;
    }
    return updates;
}

static void a_thread_that_is_alone_updates_at_once(void) {
    fixture f = fixture_new();
    work w = on(&f);
    w.value = 1;
    CHECK_CODE(durum_update_end_alone(f.pool, 1), DURUM_E_UNBALANCED);
    const int updates = updates_until_alone(&w);
    if (updates == UPDATES_MAX) {
        fixture_close(&f);
        return;
    }
    CHECK(updates > 0 && durum_tx_level() == 1);
    CHECK_CODE(add_to_both(&w), 0);
    CHECK_CODE(durum_tx_commit(), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_update_end(f.pool, 1), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_pool_close(f.pool), DURUM_E_IN_TRANSACTION);
    CHECK(durum_update_begin_alone(f.pool) == -1); /* what is inside is a part of it */
    CHECK_CODE(durum_pool_update(f.pool, add_to_both, &w), DURUM_OK);
    CHECK_CODE(durum_update_end_alone(f.pool, 1), DURUM_OK);
    CHECK(durum_tx_level() == 0 && w.root->value == (uint64_t)updates + 2);
    CHECK_CODE(durum_update_end_alone(f.pool, 1), DURUM_E_UNBALANCED);

    /* Taken back: as it says, for what is aborted in it, for a transaction that is left open. */
    for (int way = 0; way < 3; way++) {
        CHECK_CODE(durum_update_begin_alone(f.pool), DURUM_OK);
        CHECK_CODE(add_to_both(&w), 0);
        if (way == 1) {
            (void)durum_tx_abort();
        } else if (way == 2) {
            CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        }
        CHECK_CODE(durum_update_end_alone(f.pool, way > 0), way > 0 ? DURUM_E_ABORTED : DURUM_OK);
        CHECK(durum_tx_level() == 0 && w.root->value == (uint64_t)updates + 2);
    }

    /* Reads of its own change nothing; another thread that comes ends it. */
    CHECK_CODE(durum_pool_read(f.pool, look, &w), 0);
    CHECK_CODE(durum_read_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_update_begin_alone(f.pool), DURUM_E_UPDATE_IN_READ);
    CHECK_CODE(durum_read_end(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_update_begin_alone(f.pool), DURUM_E_IN_TRANSACTION);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK_CODE(durum_update_begin_alone(f.pool), DURUM_OK);
    pthread_t thread;
    work once = {w.pool, w.root, 1, 0};
    CHECK(pthread_create(&thread, NULL, add_once, &once) == 0);
    w.value = 1;
    for (int times = 0; times < 1000; times++) {
        CHECK_CODE(add_to_both(&w), 0);
    }
    CHECK_CODE(durum_update_end_alone(f.pool, 1), DURUM_OK);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(w.root->value == (uint64_t)updates + 1003 && w.root->other == w.root->value);
    CHECK(durum_update_begin_alone(f.pool) == -1);
    CHECK(updates_until_alone(&w) > updates); /* the more often, the longer it takes */
    CHECK_CODE(durum_update_end_alone(f.pool, 0), DURUM_OK);
    CHECK_CODE(durum_update_end_alone(NULL, 1), DURUM_E_ARGUMENT);
    fixture_close(&f);
}

/* What is begun in it and left open ends with it, and what was begun before stays. */
static void what_is_open_in_it_ends_with_it(void) {
    fixture f = fixture_new();
    work w = on(&f);
    w.value = 1;
    durum_pool *other = durum_pool_create(f.store, "other", NULL);
    CHECK(other != NULL);
    work w2 = {other, DURUM_ROOT(other, cell), 0, 0};
    const int updates = updates_until_alone(&w);
    if (updates == UPDATES_MAX) {
        fixture_close(&f);
        return;
    }
    CHECK_CODE(add_to_both(&w), 0);
    CHECK_CODE(durum_update_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_update_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_read_begin(other), DURUM_E_IN_TRANSACTION);
    CHECK_CODE(durum_update_end_alone(f.pool, 1), DURUM_E_ABORTED);
    CHECK(durum_tx_level() == 0 && w.root->value == (uint64_t)updates);
    CHECK_CODE(durum_update_end(f.pool, 1), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_tx_add(w.root, 8), DURUM_E_NO_TRANSACTION);

    CHECK_CODE(durum_read_begin(other), DURUM_OK);
    CHECK_CODE(durum_update_begin_alone(f.pool), DURUM_OK);
    CHECK_CODE(durum_read_end(other), DURUM_E_UNBALANCED);
    CHECK_CODE(add_to_both(&w), 0);
    CHECK_CODE(durum_tx_commit(), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_update_end_alone(f.pool, 1), DURUM_OK);
    CHECK(w.root->value == (uint64_t)updates + 1);
    CHECK_CODE(durum_read_end(other), DURUM_OK);

    /* What failed in it is still told when it has been taken back. */
    CHECK_CODE(durum_update_begin_alone(f.pool), DURUM_OK);
    CHECK(durum_errorcode() == DURUM_OK);
    CHECK_CODE(durum_tx_add(&w, 8), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_update_end_alone(f.pool, 0), DURUM_OK);
    CHECK(durum_errorcode() == DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_pool_read(other, look, &w2), 0);
    CHECK_CODE(durum_pool_close(other), DURUM_OK);
    fixture_close(&f);
}

static void *end_in_it(void *arg) {
    work *w = (work *)arg;
    /* Before it, so that what is kept of it goes last when the thread ends. */
    CHECK_CODE(durum_read_begin(w->pool), DURUM_OK);
    CHECK_CODE(durum_read_end(w->pool), DURUM_OK);
    const int opens_another = w->returns;
    w->value = 0;
    w->returns = 0;
    if (updates_until_alone(w) < UPDATES_MAX) {
        w->value = 1;
        CHECK_CODE(add_to_both(w), 0);
        if (opens_another == 1) {
            CHECK_CODE(durum_update_begin(w->pool), DURUM_OK);
        }
    }
    return NULL;
}

static void a_thread_that_ends_in_it_takes_it_back(void) {
    fixture f = fixture_new();
    work w = on(&f);
    for (int times = 0; times < 4; times++) {
        w.returns = times % 2;
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, end_in_it, &w) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(w.root->value == (uint64_t)times && w.root->other == (uint64_t)times);
        w.value = 1;
        CHECK_CODE(durum_pool_update(f.pool, add_to_both, &w), DURUM_OK);
    }
    fixture_close(&f);
}

/* As open updates in what runs as a function. */
static int leave_one_open(void *arg) {
    work *w = (work *)arg;
    CHECK_CODE(add_to_both(w), 0);
    CHECK_CODE(durum_update_begin(w->pool), DURUM_OK);
    return 0;
}

static void what_is_open_in_a_function_ends_with_it(void) {
    fixture f = fixture_new();
    work w = on(&f);
    w.value = 1;
    for (int times = 0; times < 40; times++) {
        CHECK_CODE(durum_pool_update(f.pool, leave_one_open, &w), DURUM_E_ABORTED);
        CHECK(durum_tx_level() == 0 && w.root->value == (uint64_t)times);
        CHECK_CODE(durum_update_end(f.pool, 1), DURUM_E_UNBALANCED);
        CHECK_CODE(durum_pool_update(f.pool, add_to_both, &w), DURUM_OK);
    }
    fixture_close(&f);
}

const test alone_tests[] = {
    {"a_thread_that_is_alone_updates_at_once", a_thread_that_is_alone_updates_at_once},
    {"what_is_open_in_it_ends_with_it", what_is_open_in_it_ends_with_it},
    {"a_thread_that_ends_in_it_takes_it_back", a_thread_that_ends_in_it_takes_it_back},
    {"what_is_open_in_a_function_ends_with_it", what_is_open_in_a_function_ends_with_it},
    {NULL, NULL}};
