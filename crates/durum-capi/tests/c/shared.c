/* Updates and reads that threads share: in functions, by begin and end, and of copies; and threads
 * that end inside of them. */
#include "work.h"
#include <pthread.h>
#include <setjmp.h>

static void an_update_is_kept_unless_it_says_not(void) {
    fixture f = fixture_new();
    work w = on(&f);
    w.value = 5;
    CHECK_CODE(durum_pool_update(f.pool, add_to_both, &w), DURUM_OK);
    CHECK(w.root->value == 5 && w.root->other == 5);
    /* Its own code comes back, and a message that tells it. */
    w.returns = -7;
    CHECK_CODE(durum_pool_update(f.pool, add_to_both, &w), -7);
    CHECK(strstr(durum_errormsg(), "-7") != NULL);
    CHECK(w.root->value == 5 && w.root->other == 5);
    w.returns = 0;
    CHECK_CODE(durum_pool_read(f.pool, look, &w), 0);
    CHECK(w.value == 5);
    w.returns = 42;
    CHECK_CODE(durum_pool_read(f.pool, look, &w), 42);
    CHECK_CODE(durum_pool_update(NULL, look, &w), -7); /* the failure on record */
    CHECK_CODE(durum_pool_update(f.pool, NULL, &w), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_pool_read(f.pool, NULL, &w), DURUM_E_ARGUMENT);
    fixture_close(&f);
}

static int fail_within(void *arg) {
    work *w = (work *)arg;
    CHECK_CODE(add_to_both(w), 0);
    /* The level is the update's. */
    CHECK_CODE(durum_tx_commit(), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_tx_rollback(), DURUM_E_UNBALANCED);
    DURUM_TX_BEGIN(w->pool) {
        DURUM_TX_ADD(&w->root->other);
        w->root->other += 1;
        (void)durum_tx_abort();
    }
    DURUM_TX_END
    return 0;
}

static int update_within(void *arg) {
    work *w = (work *)arg;
    return durum_pool_update(w->pool, add_to_both, w);
}

static void what_is_inside_of_an_update_is_a_part_of_it(void) {
    fixture f = fixture_new();
    work w = on(&f);
    w.value = 1;
    CHECK_CODE(durum_pool_update(f.pool, update_within, &w), DURUM_OK);
    CHECK(w.root->value == 1);
    CHECK_CODE(durum_pool_update(f.pool, fail_within, &w), DURUM_E_ABORTED);
    CHECK(w.root->value == 1 && w.root->other == 1);
    CHECK_CODE(durum_pool_read(f.pool, update_within, &w), DURUM_E_UPDATE_IN_READ);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_pool_update(f.pool, add_to_both, &w), DURUM_E_IN_TRANSACTION);
    CHECK_CODE(durum_pool_read(f.pool, look, &w), DURUM_E_IN_TRANSACTION);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK(w.root->value == 1);
    fixture_close(&f);
}

static void updates_and_reads_begin_and_end(void) {
    fixture f = fixture_new();
    work w = on(&f);
    w.value = 2;
    CHECK_CODE(durum_update_begin(f.pool), DURUM_OK);
    CHECK(durum_tx_level() == 1);
    CHECK_CODE(add_to_both(&w), 0);
    CHECK_CODE(durum_tx_commit(), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_read_end(f.pool), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_pool_close(f.pool), DURUM_E_IN_TRANSACTION);
    /* A transaction in it ends first. */
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_update_end(f.pool, 1), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK_CODE(durum_update_end(f.pool, 1), DURUM_OK);
    CHECK(w.root->value == 2 && durum_tx_level() == 0);

    CHECK_CODE(durum_update_begin(f.pool), DURUM_OK);
    CHECK_CODE(add_to_both(&w), 0);
    CHECK_CODE(durum_update_end(f.pool, 0), DURUM_OK);
    CHECK(w.root->value == 2 && w.root->other == 2);

    /* One level that is not kept takes the others along. */
    CHECK_CODE(durum_update_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_update_begin(f.pool), DURUM_OK);
    CHECK_CODE(add_to_both(&w), 0);
    CHECK_CODE(durum_update_end(f.pool, 0), DURUM_OK);
    CHECK_CODE(durum_update_end(f.pool, 1), DURUM_E_ABORTED);
    CHECK(w.root->value == 2 && w.root->other == 2);

    CHECK_CODE(durum_read_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_update_begin(f.pool), DURUM_E_UPDATE_IN_READ);
    CHECK_CODE(durum_pool_close(f.pool), DURUM_E_IN_TRANSACTION);
    CHECK_CODE(durum_update_end(f.pool, 1), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_read_end(f.pool), DURUM_OK);
    CHECK_CODE(durum_read_end(f.pool), DURUM_E_UNBALANCED);
    CHECK_CODE(durum_update_begin(NULL), DURUM_E_UNBALANCED); /* the failure on record */
    fixture_close(&f);
}

enum { THREADS = 4, ROUNDS = 400 };

static void *add_many_times(void *arg) {
    work own = *(work *)arg;
    for (int round = 0; round < ROUNDS; round++) {
        own.value = 1;
        own.returns = round % 5 == 0;
        CHECK_CODE(durum_pool_update(own.pool, add_to_both, &own), own.returns);
        own.returns = 3;
        CHECK_CODE(durum_pool_read(own.pool, look, &own), 3);
        CHECK(own.value > 0 || round == 0);
    }
    return NULL;
}

static void run_threads(work *w, void *(*body)(void *)) {
    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++) {
        CHECK(pthread_create(&threads[at], NULL, body, w) == 0);
    }
    for (int at = 0; at < THREADS; at++) {
        CHECK(pthread_join(threads[at], NULL) == 0);
    }
}

static void threads_share_a_pool(void) {
    fixture f = fixture_new();
    work w = on(&f);
    run_threads(&w, add_many_times);
    CHECK(w.root->value == (uint64_t)THREADS * (ROUNDS - ROUNDS / 5));
    fixture_close(&f);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static durum_pool_options copied(uint32_t flags) {
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.engine = DURUM_ENGINE_TWIN;
    options.flags = flags;
    return options;
}

/* A pool whose copies can be read. */
static fixture left_right(void) {
    fixture f = fixture_new();
    CHECK_CODE(durum_pool_close(f.pool), DURUM_OK);
    durum_pool_options options = copied(DURUM_POOL_LEFT_RIGHT);
    f.pool = durum_pool_create(f.store, "copied", &options);
    CHECK(f.pool != NULL);
    return f;
}

static const cell *seen_in(const durum_copy *copy, const cell *object) {
    uintptr_t address = (uintptr_t)object;
    CHECK(address - copy->start < copy->size);
    return (const cell *)(address + copy->distance);
}

static int look_at_copy(const durum_copy *copy, void *arg) {
    work *w = (work *)arg;
    const cell *seen = seen_in(copy, w->root);
    CHECK(seen->value == seen->other);
    w->value = seen->value;
    return w->returns;
}

/* As look_at_copy, by a thread that comes and goes. */
static void *look_at_copy_once(void *arg) {
    CHECK_CODE(durum_pool_read_copy(((work *)arg)->pool, look_at_copy, arg), 0);
    return NULL;
}

static uint64_t seen_by_another_thread(const work *w) {
    work other = {w->pool, w->root, 0, 0};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, look_at_copy_once, &other) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return other.value;
}

static int change_in_the_middle_of_readers(void *arg) {
    work *w = (work *)arg;
    CHECK_CODE(durum_tx_add(w->root, sizeof(*w->root)), DURUM_OK);
    w->root->value += 1;
    /* It stands still until a reader has come, seen what was, and gone. */
    CHECK(seen_by_another_thread(w) == w->root->other);
    w->root->other += 1;
    /* Its own reads are parts of it. */
    work inside = {w->pool, w->root, 0, 0};
    CHECK_CODE(durum_pool_read_copy(w->pool, look_at_copy, &inside), 0);
    CHECK(inside.value == w->root->value);
    return w->returns;
}

static void readers_of_a_copy_do_not_wait(void) {
    fixture f = left_right();
    work w = on(&f);
    for (uint64_t round = 1; round < 4; round++) {
        CHECK_CODE(durum_pool_update(f.pool, change_in_the_middle_of_readers, &w), 0);
        w.returns = 13;
        CHECK_CODE(durum_pool_read_copy(f.pool, look_at_copy, &w), 13);
        CHECK(w.value == round && seen_by_another_thread(&w) == round);
        CHECK_CODE(durum_pool_update(f.pool, change_in_the_middle_of_readers, &w), 13);
        CHECK(seen_by_another_thread(&w) == round);
        w.returns = 0;
    }
    CHECK_CODE(durum_pool_read_copy(f.pool, NULL, &w), DURUM_E_ARGUMENT);
    fixture_close(&f);
}

static void *look_many_times(void *arg) {
    work own = *(work *)arg;
    for (uint64_t last = 0; last < ROUNDS; last = own.value) {
        CHECK_CODE(durum_pool_read_copy(own.pool, look_at_copy, &own), 0);
        CHECK(own.value >= last);
    }
    return NULL;
}

static void *add_all(void *arg) {
    work own = *(work *)arg;
    own.value = 1;
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_CODE(durum_pool_update(own.pool, add_to_both, &own), 0);
    }
    return NULL;
}

static void readers_see_each_update_whole_and_in_order(void) {
    fixture f = left_right();
    work w = on(&f);
    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, add_all, &w) == 0);
    run_threads(&w, look_many_times);
    CHECK(pthread_join(writer, NULL) == 0);
    CHECK(w.root->value == ROUNDS);
    fixture_close(&f);
}

static int nothing_changes_here(const durum_copy *copy, void *arg) {
    work *w = (work *)arg;
    CHECK_CODE(durum_pool_update(w->pool, add_to_both, w), DURUM_E_READS_COPY);
    CHECK_CODE(durum_pool_read(w->pool, look, w), DURUM_E_READS_COPY);
    CHECK_CODE(durum_update_begin(w->pool), DURUM_E_READS_COPY);
    CHECK_CODE(durum_tx_begin(w->pool), DURUM_E_READS_COPY);
    CHECK_CODE(durum_persist(w->root, sizeof(cell)), DURUM_E_READS_COPY);
    CHECK(durum_tx_level() == 0);
    /* In one another they show the same. */
    work inside = *w;
    inside.returns = 3;
    CHECK_CODE(durum_pool_read_copy(w->pool, look_at_copy, &inside), 3);
    CHECK(inside.value == seen_in(copy, w->root)->value);
    return 0;
}

static void a_copy_is_not_changed(void) {
    fixture f = left_right();
    work w = on(&f);
    CHECK_CODE(durum_pool_read_copy(f.pool, nothing_changes_here, &w), 0);
    CHECK(w.root->value == 0);
    fixture_close(&f);
}

static int find_range(const durum_copy *copy, void *arg) {
    *(durum_copy *)arg = *copy;
    return 0;
}

static void addresses_in_the_back_copy_are_refused(void) {
    fixture f = left_right();
    work w = on(&f);
    durum_copy range = {0, 0, 0};
    CHECK_CODE(durum_pool_read_copy(f.pool, find_range, &range), 0);
    /* The back copy lies one range behind main. */
    cell *back = (cell *)((uintptr_t)w.root + range.size);
    CHECK(durum_in_pool(w.root) == 1 && durum_in_pool(back) == 1 && durum_in_pool(&w) == 0);
    CHECK(durum_in_pool((char *)back + ((size_t)1 << 30)) == 0);
    CHECK_CODE(durum_update_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_add(back, sizeof(*back)), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_add(&back->value, sizeof(back->value)), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_clobber(back, sizeof(*back)), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_tx_redo_set(&back->value, &w.value, 8), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_free(back), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_update_end(f.pool, 1), DURUM_OK);
    CHECK_CODE(durum_persist(back, sizeof(*back)), DURUM_E_NOT_IN_POOL);
    fixture_close(&f);
    CHECK(durum_in_pool(back) == 0);
}

static void copies_are_for_pools_that_have_them(void) {
    fixture f = fixture_new(); /* its pool has the default engine */
    work w = on(&f);
    CHECK_CODE(durum_pool_read_copy(f.pool, look_at_copy, &w), DURUM_E_NO_COPIES);
    CHECK(strstr(durum_errormsg(), "pool") != NULL);
    CHECK_CODE(durum_pool_close(f.pool), DURUM_OK);

    durum_pool_options options = copied(DURUM_POOL_LEFT_RIGHT);
    CHECK_NULL(durum_pool_open(f.store, "pool", &options), DURUM_E_NO_COPIES);
    CHECK_NULL(durum_pool_open_or_create(f.store, "pool", &options), DURUM_E_NO_COPIES);
    options.engine = DURUM_ENGINE_DEFAULT;
    CHECK_NULL(durum_pool_create(f.store, "second", &options), DURUM_E_ARGUMENT);
    options = copied(DURUM_POOL_LEFT_RIGHT | DURUM_POOL_BASIC_COPIES);
    CHECK_NULL(durum_pool_create(f.store, "second", &options), DURUM_E_ARGUMENT);
    CHECK(strstr(durum_errormsg(), "exclude") != NULL);

    /* The mode is that of the opening, not of the pool. */
    const uint32_t modes[] = {0, DURUM_POOL_BASIC_COPIES, DURUM_POOL_LEFT_RIGHT};
    for (uint64_t mode = 0; mode < 3; mode++) {
        options = copied(modes[mode]);
        f.pool = durum_pool_open_or_create(f.store, "second", &options);
        w = on(&f);
        CHECK(w.root->value == mode);
        w.value = 1;
        CHECK_CODE(durum_pool_update(f.pool, add_to_both, &w), DURUM_OK);
        w.returns = 9;
        const int reads = modes[mode] == DURUM_POOL_LEFT_RIGHT ? 9 : DURUM_E_NO_COPIES;
        CHECK_CODE(durum_pool_read_copy(f.pool, look_at_copy, &w), reads);
        CHECK_CODE(durum_pool_close(f.pool), DURUM_OK);
    }
    CHECK_CODE(durum_store_close(f.store), DURUM_OK);
}

static void the_basic_mode_copies_what_nobody_announced(void) {
    fixture f = fixture_new();
    durum_pool_options options = copied(DURUM_POOL_BASIC_COPIES);
    durum_pool *basic = durum_pool_create(f.store, "basic", &options);
    cell *root = DURUM_ROOT(basic, cell);
    CHECK(root != NULL);
    durum_copy range = {0, 0, 0};
    options = copied(DURUM_POOL_LEFT_RIGHT);
    durum_pool *other = durum_pool_create(f.store, "other", &options);
    CHECK_CODE(durum_pool_read_copy(other, find_range, &range), 0);
    const cell *back = (const cell *)((uintptr_t)root + range.size);
    cell *far = (cell *)durum_malloc_zeroed(basic, DURUM_TYPE_OF(cell), 4096 * sizeof(cell));
    CHECK(far != NULL);
    const cell *far_back = (const cell *)((uintptr_t)far + range.size);
    CHECK_CODE(durum_update_begin(basic), DURUM_OK);
    CHECK_CODE(durum_tx_add(&root->value, 8), DURUM_OK);
    root->value = 1;
    far[4000].value = 2;
    CHECK_CODE(durum_update_end(basic, 1), DURUM_OK);
    CHECK(back->value == 1 && far_back[4000].value == 2);
    CHECK_CODE(durum_pool_close(basic), DURUM_OK);
    CHECK_CODE(durum_pool_close(other), DURUM_OK);
    fixture_close(&f);
}

/* ---- threads that end ------------------------------------------------------------------------ */

/* The recipe of docs/tutorials/c.md. */
enum { ENDED = -1 };

static void go_back(void *arg) {
    longjmp(*(jmp_buf *)arg, 1);
}

static int until_it_ends(int (*function)(void *arg), void *arg) {
    jmp_buf here;
    volatile int code = ENDED;
    pthread_cleanup_push(go_back, &here);
    if (setjmp(here) == 0) {
        code = function(arg);
    }
    pthread_cleanup_pop(0);
    return code;
}

static int add_and_end(void *arg) {
    work *w = (work *)arg;
    if (durum_tx_level() > 0) {
        (void)add_to_both(w);
    }
    pthread_exit(w);
}

static int add_until_it_ends(void *arg) {
    return until_it_ends(add_and_end, arg);
}

static int copy_until_it_ends(const durum_copy *copy, void *arg) {
    (void)copy;
    return until_it_ends(add_and_end, arg);
}

static void *update_and_end(void *arg) {
    work *w = (work *)arg;
    if (durum_pool_update(w->pool, add_until_it_ends, w) == ENDED) {
        pthread_exit(NULL);
    }
    return w;
}

static void *read_and_end(void *arg) {
    work *w = (work *)arg;
    if (durum_pool_read(w->pool, add_until_it_ends, w) == ENDED) {
        pthread_exit(NULL);
    }
    return w;
}

static void *read_copy_and_end(void *arg) {
    work *w = (work *)arg;
    if (durum_pool_read_copy(w->pool, copy_until_it_ends, w) == ENDED) {
        pthread_exit(NULL);
    }
    return w;
}

static void *end_in_open_update(void *arg) {
    work *w = (work *)arg;
    CHECK_CODE(durum_update_begin(w->pool), DURUM_OK);
    CHECK_CODE(durum_update_begin(w->pool), DURUM_OK);
    (void)add_to_both(w);
    pthread_exit(NULL);
}

static void *end_in_open_read(void *arg) {
    CHECK_CODE(durum_read_begin(((work *)arg)->pool), DURUM_OK);
    pthread_exit(NULL);
}

static int add_and_be_cancelled(void *arg) {
    CHECK(pthread_cancel(pthread_self()) == 0);
    pthread_testcancel();
    return add_to_both(arg);
}

static void *be_cancelled(void *arg) {
    work *w = (work *)arg;
    CHECK_CODE(durum_pool_update(w->pool, add_and_be_cancelled, w), DURUM_OK);
    w->returns = 1;
    pthread_testcancel();
    return w;
}

static void *joined(void *(*body)(void *), work *w) {
    pthread_t thread;
    void *told = w;
    CHECK(pthread_create(&thread, NULL, body, w) == 0);
    CHECK(pthread_join(thread, &told) == 0);
    return told;
}

static void a_thread_that_ends_leaves_others_running(void) {
    fixture f = left_right();
    work w = on(&f);
    void *(*const bodies[])(void *) = {update_and_end, read_and_end, read_copy_and_end,
                                       end_in_open_update, end_in_open_read};
    for (uint64_t at = 0; at < sizeof(bodies) / sizeof(bodies[0]); at++) {
        w.value = 1;
        for (int times = 0; times < 3; times++) {
            CHECK(joined(bodies[at], &w) == NULL);
            CHECK(w.root->value == at && w.root->other == at);
        }
        CHECK(joined(add_many_times, &w) == NULL);
        CHECK_CODE(durum_update_begin(f.pool), DURUM_OK);
        CHECK_CODE(durum_tx_add(w.root, sizeof(*w.root)), DURUM_OK);
        w.root->value = w.root->other = at + 1;
        CHECK_CODE(durum_update_end(f.pool, 1), DURUM_OK);
        CHECK(seen_by_another_thread(&w) == at + 1);
    }
    w.value = 1;
    const uint64_t before = w.root->value;
    CHECK(joined(be_cancelled, &w) == PTHREAD_CANCELED);
    CHECK(w.returns == 1 && w.root->value == before + 1);
    fixture_close(&f);
}

const test shared_tests[] = {
    {"an_update_is_kept_unless_it_says_not", an_update_is_kept_unless_it_says_not},
    {"what_is_inside_of_an_update_is_a_part_of_it", what_is_inside_of_an_update_is_a_part_of_it},
    {"updates_and_reads_begin_and_end", updates_and_reads_begin_and_end},
    {"threads_share_a_pool", threads_share_a_pool},
    {"readers_of_a_copy_do_not_wait", readers_of_a_copy_do_not_wait},
    {"readers_see_each_update_whole_and_in_order", readers_see_each_update_whole_and_in_order},
    {"a_copy_is_not_changed", a_copy_is_not_changed},
    {"addresses_in_the_back_copy_are_refused", addresses_in_the_back_copy_are_refused},
    {"copies_are_for_pools_that_have_them", copies_are_for_pools_that_have_them},
    {"the_basic_mode_copies_what_nobody_announced", the_basic_mode_copies_what_nobody_announced},
    {"a_thread_that_ends_leaves_others_running", a_thread_that_ends_leaves_others_running},
    {NULL, NULL}};
