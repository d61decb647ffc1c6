/* Forks, threads, media errors, full disks. */
#include "check.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_forked_child_is_told_to_open_again(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
    CHECK_CODE(durum_tx_add(&root->value, sizeof(root->value)), DURUM_OK);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_E_FORKED);
        CHECK_CODE(durum_tx_add(&root->value, sizeof(root->value)), DURUM_E_FORKED);
        CHECK_CODE(durum_tx_rollback(), DURUM_E_FORKED);
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_E_FORKED);
        CHECK_CODE(durum_persist(root, sizeof(*root)), DURUM_E_FORKED);
        CHECK_CODE(durum_free(root), DURUM_E_FORKED);
        CHECK_NULL(durum_malloc(f.pool, NULL, 8), DURUM_E_FORKED);
        CHECK_NULL(durum_pool_open(f.store, "pool", NULL), DURUM_E_FORKED);
        CHECK_CODE(durum_pool_remove(f.store, "pool"), DURUM_E_FORKED);
        DURUM_TX_BEGIN(f.pool) {
            CHECK(0);
        }
        DURUM_TX_ONABORT {
            CHECK_CODE(durum_errorcode(), DURUM_E_FORKED);
        }
        DURUM_TX_END
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    root->value = 4;
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK(root->value == 4);
    fixture_close(&f);
}

static void a_child_forked_when_all_is_closed_opens_stores(void) {
    fixture f = fixture_new();
    fixture_close(&f);
    for (uint64_t value = 1; value < 4; value++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            durum_store *store = durum_store_open(store_path(), NULL);
            CHECK(store != NULL);
            durum_pool *pool = durum_pool_open(store, "pool", NULL);
            CHECK(pool != NULL);
            cell *root = DURUM_ROOT(pool, cell);
            CHECK(root != NULL && root->value == value - 1);
            DURUM_TX_BEGIN(pool) {
                DURUM_TX_ADD(root);
                root->value = value;
            }
            DURUM_TX_END
            CHECK_CODE(durum_errorcode(), DURUM_OK);
            CHECK_CODE(durum_pool_close(pool), DURUM_OK);
            CHECK_CODE(durum_store_close(store), DURUM_OK);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

typedef struct work {
    durum_pool *pool;
    cell *cells;
    int number;
} work;

enum { THREADS = 8, ROUNDS = 500 };

static void *change(void *argument) {
    const work *w = (const work *)argument;
    cell *mine = &w->cells[w->number];
    CHECK(durum_errorcode() == DURUM_OK);
    for (int i = 0; i < ROUNDS; i++) {
        DURUM_TX_BEGIN(w->pool) {
            DURUM_TX_ADD(mine);
            mine->value += 1;
            cell *n = DURUM_TX_NEW(w->pool, cell);
            n->next = mine->next;
            mine->next = n;
            if (i % 5 == 0) {
                durum_tx_abort();
            }
        }
        DURUM_TX_END
    }
    /* A failure here is nobody else's. */
    CHECK_CODE(durum_tx_commit(), DURUM_E_NO_TRANSACTION);
    return NULL;
}

static void threads_have_their_own_transactions_and_errors(void) {
    fixture f = fixture_new();
    cell *cells = (cell *)durum_root(f.pool, DURUM_TYPE_OF(cell), THREADS * sizeof(cell));
    CHECK(cells != NULL);
    pthread_t threads[THREADS];
    work works[THREADS];
    for (int i = 0; i < THREADS; i++) {
        works[i].pool = f.pool;
        works[i].cells = cells;
        works[i].number = i;
        CHECK(pthread_create(&threads[i], NULL, change, &works[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(durum_errorcode() == DURUM_OK);
    for (int i = 0; i < THREADS; i++) {
        uint64_t length = 0;
        for (const cell *c = cells[i].next; c != NULL; c = c->next) {
            length++;
        }
        CHECK(cells[i].value == ROUNDS / 5 * 4 && length == cells[i].value);
    }
    fixture_close(&f);
}

/* Cuts each file of a store's puddles down to nothing, as a failing medium would. */
static void truncate_puddles(void) {
    char path[1400];
    DIR *directory = opendir(scratch("store/puddles"));
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", scratch("store/puddles"), entry->d_name);
            CHECK(truncate(path, 0) == 0);
        }
    }
    closedir(directory);
}

static void a_media_error_poisons_the_pool_and_is_reported(void) {
    durum_store *store = durum_store_open_or_create(store_path(), NULL);
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.flags = DURUM_POOL_SURVIVE_MEDIA_ERRORS;
    durum_pool *pool = durum_pool_create(store, "pool", &options);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root != NULL);
    truncate_puddles();
    volatile uint64_t value = ((volatile cell *)root)->value;
    (void)value;
    CHECK_CODE(durum_persist(root, sizeof(*root)), DURUM_E_POISONED);
    CHECK(strstr(durum_errormsg(), "puddles") != NULL);
    CHECK(DURUM_E_GROUP(durum_errorcode()) == 3);
    CHECK_CODE(durum_tx_begin(pool), DURUM_E_POISONED);
    CHECK_NULL(durum_malloc(pool, NULL, 8), DURUM_E_POISONED);
    DURUM_TX_BEGIN(pool) {
        CHECK(0);
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_E_POISONED);
    durum_pool_close(pool);
    durum_store_close(store);
    store = durum_store_open(store_path(), NULL);
    pool = durum_pool_open(store, "pool", NULL);
    CHECK(pool == NULL);
    CHECK(DURUM_E_GROUP(durum_errorcode()) == 3);
}

/* The program's own code reads it, where durum_tx_add takes no call. */
static void a_word_that_cannot_be_read_fails_the_commit(void) {
    durum_store *store = durum_store_open_or_create(store_path(), NULL);
    durum_pool *pool = durum_pool_create(store, "pool", NULL);
    cell *root = DURUM_ROOT(pool, cell);
    const size_t count = 100000;
    DURUM_TX_BEGIN(pool) {
        DURUM_TX_ADD(&root->next);
        root->next = DURUM_TX_ALLOC(pool, cell, count * sizeof(cell));
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_OK);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
    /* Opened again, all its memory is the file's. */
    store = durum_store_open(store_path(), NULL);
    pool = durum_pool_open(store, "pool", NULL);
    CHECK(pool != NULL);
    root = DURUM_ROOT(pool, cell);
    cell *cells = root->next;
    CHECK_CODE(durum_tx_begin(pool), DURUM_OK);
    CHECK_CODE(durum_tx_add(&cells[0].value, sizeof(cells[0].value)), DURUM_OK);
    CHECK_CODE(durum_tx_commit(), DURUM_OK);
    CHECK_CODE(durum_tx_begin(pool), DURUM_OK);
    truncate_puddles();
    CHECK_CODE(durum_tx_add(&cells[count / 2].value, sizeof(cells[0].value)), DURUM_OK);
    cells[count / 2].value = 7;
    CHECK_CODE(durum_tx_commit(), DURUM_E_POISONED);
    CHECK(strstr(durum_errormsg(), "puddles") != NULL);
    CHECK_CODE(durum_tx_begin(pool), DURUM_E_POISONED);
    durum_pool_close(pool);
    durum_store_close(store);
}

static void a_pool_that_cannot_grow_stays_usable(void) {
    /* The limit is that of this process, and the files of a service are not its. */
    if (is_served())
        return;
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct rlimit small = limit;
    small.rlim_cur = 1 << 20;
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    volatile int code = 0;
    DURUM_TX_BEGIN_WITH(f.pool, DURUM_DURABLE | DURUM_ALLOC_MAY_FAIL) {
        DURUM_TX_ADD(root);
        root->value = 1;
        CHECK(durum_malloc(f.pool, NULL, 64 << 20) == NULL);
        code = durum_errorcode();
        root->other = 2;
    }
    DURUM_TX_ONABORT {
        CHECK(0);
    }
    DURUM_TX_END
    CHECK(DURUM_E_GROUP(code) == 4);
    CHECK(root->value == 1 && root->other == 2);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    void *object = durum_malloc(f.pool, NULL, 64 << 20);
    CHECK(object != NULL);
    CHECK_CODE(durum_free(object), DURUM_OK);
    fixture_close(&f);
}

const test fault_tests[] = {
    {"a_forked_child_is_told_to_open_again", a_forked_child_is_told_to_open_again},
    {"a_child_forked_when_all_is_closed_opens_stores",
     a_child_forked_when_all_is_closed_opens_stores},
    {"threads_have_their_own_transactions_and_errors",
     threads_have_their_own_transactions_and_errors},
    {"a_media_error_poisons_the_pool_and_is_reported",
     a_media_error_poisons_the_pool_and_is_reported},
    {"a_word_that_cannot_be_read_fails_the_commit", a_word_that_cannot_be_read_fails_the_commit},
    {"a_pool_that_cannot_grow_stays_usable", a_pool_that_cannot_grow_stays_usable},
    {NULL, NULL},
};
